package image

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// query is one question to EC2.
type query struct {
	about   string // for people
	filters []ec2types.Filter
	owners  []string
	// kinds says, by the id of an image, what it is made for, where that is known from elsewhere: EC2 only knows the
	// architecture.
	kinds map[string][]kind
}

// input asks for images that can be launched, deprecated ones too: they are used if a class names them.
func (q query) input() *ec2.DescribeImagesInput {
	return &ec2.DescribeImagesInput{
		Filters:           append(slices.Clone(q.filters), filter("state", string(ec2types.ImageStateAvailable))),
		Owners:            q.owners,
		IncludeDeprecated: new(true),
		MaxResults:        new(int32(1000)),
	}
}

func filter(name string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: &name, Values: values}
}

// queries turns the terms of a class into questions. Images that are known by id, whoever named it, share one.
func (f *Finder) queries(ctx context.Context, terms []awsv1.AMISelectorTerm, kubernetes string) ([]query, error) {
	var out []query
	kinds := map[string][]kind{}
	for _, term := range terms {
		switch {
		case term.Alias != "":
			if err := f.resolve(ctx, term.Alias, kubernetes, kinds); err != nil {
				return nil, err
			}
		case term.SSMParameter != "":
			id, err := f.parameter(ctx, term.SSMParameter)
			if err != nil {
				return nil, err
			}
			kinds[id] = nil
		case term.ID != "":
			kinds[term.ID] = nil
		default:
			out = append(out, byNameAndTags(term))
		}
	}
	if len(kinds) > 0 {
		ids := slices.Sorted(maps.Keys(kinds))
		out = append(out, query{about: strings.Join(ids, ", "), filters: []ec2types.Filter{filter("image-id", ids...)},
			kinds: kinds})
	}
	return out, nil
}

// byNameAndTags asks by what EC2 itself knows. Without an owner a name finds only images of the account and of Amazon:
// anybody can publish an image under any name. Tags need no owner, since only the account's own tags are seen.
func byNameAndTags(term awsv1.AMISelectorTerm) query {
	q := query{about: described(term)}
	switch {
	case term.Owner != "":
		q.owners = []string{term.Owner}
	case term.Name != "":
		q.owners = []string{"self", "amazon"}
	}
	if term.Name != "" {
		q.filters = append(q.filters, filter("name", term.Name))
	}
	for _, key := range slices.Sorted(maps.Keys(term.Tags)) {
		if term.Tags[key] == "*" {
			q.filters = append(q.filters, filter("tag-key", key))
		} else {
			q.filters = append(q.filters, filter("tag:"+key, term.Tags[key]))
		}
	}
	return q
}

// resolve looks an alias up. That some of its images don't exist is normal; that none does is an error.
func (f *Finder) resolve(ctx context.Context, text, kubernetes string, kinds map[string][]kind) error {
	alias, ok := awsv1.ParseAlias(text)
	if !ok {
		return &NoMatchError{fmt.Sprintf("spec.amiSelectorTerms has the alias %q; it must be a family, an @ and a "+
			"version, such as al2023@latest", text)}
	}
	moves := alias.Version == awsv1.AliasVersionLatest
	images := publishedAs(alias, kubernetes)
	var names []string
	for _, p := range images {
		id, err := f.parameters.get(ctx, p.parameter, moves)
		if err != nil {
			return err
		}
		names = append(names, p.parameter)
		if id != "" {
			kinds[id] = append(kinds[id], p.kinds...)
		}
	}
	if len(kinds) > 0 {
		return nil
	}
	f.parameters.forget(names...) // the release may be published at any time
	return nothing([]awsv1.AMISelectorTerm{{Alias: text}}, kubernetes)
}

// parameter reads a parameter that a class names. If it is missing the whole search fails, even if other terms find
// images: nodes would be moved to those, and back again when the parameter is there.
func (f *Finder) parameter(ctx context.Context, name string) (string, error) {
	id, err := f.parameters.get(ctx, name, true)
	if err != nil {
		return "", err
	}
	if id == "" {
		f.parameters.forget(name)
		return "", &NoMatchError{fmt.Sprintf("spec.amiSelectorTerms names the SSM parameter %s, which does not exist "+
			"in this region and account; create it or correct the name", name)}
	}
	if !strings.HasPrefix(id, "ami-") {
		f.parameters.forget(name)
		return "", &NoMatchError{fmt.Sprintf("the SSM parameter %s of spec.amiSelectorTerms holds %.40q, which is no "+
			"AMI id; it must hold one, such as ami-0a1b2c3d", name, id)}
	}
	return id, nil
}

// nothing says what was looked for in vain and what can be done about it.
func nothing(terms []awsv1.AMISelectorTerm, kubernetes string) error {
	var looked, fixes []string
	for _, term := range terms {
		looked = append(looked, described(term))
		if fix := fixFor(term, kubernetes); !slices.Contains(fixes, fix) {
			fixes = append(fixes, fix)
		}
	}
	return &NoMatchError{fmt.Sprintf("no AMI matches spec.amiSelectorTerms: %s; %s", strings.Join(looked, " or "),
		strings.Join(fixes, "; "))}
}

// described says in words what a term asks for.
func described(term awsv1.AMISelectorTerm) string {
	var parts []string
	for _, p := range []struct{ word, value string }{
		{"alias", term.Alias}, {"SSM parameter", term.SSMParameter}, {"id", term.ID}, {"name", term.Name},
		{"owner", term.Owner},
	} {
		if p.value != "" {
			parts = append(parts, p.word+" "+p.value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(term.Tags)) {
		parts = append(parts, fmt.Sprintf("tag %s=%s", key, term.Tags[key]))
	}
	return strings.Join(parts, ", ")
}

func fixFor(term awsv1.AMISelectorTerm, kubernetes string) string {
	alias, _ := awsv1.ParseAlias(term.Alias)
	switch {
	case alias.Family == awsv1.AMIFamilyAL2:
		return fmt.Sprintf("AWS publishes none for Kubernetes %s in this region, and none at all from 1.33 on; use "+
			"al2023@latest or bottlerocket@latest", kubernetes)
	case term.Alias != "" && alias.Version == awsv1.AliasVersionLatest:
		return fmt.Sprintf("AWS publishes no AMI of this family for Kubernetes %s in this region (yet); use another "+
			"family, or select the AMI by id, name or tags", kubernetes)
	case term.Alias != "":
		return fmt.Sprintf("AWS publishes none for Kubernetes %s in this region; check the version, or use %s@latest",
			kubernetes, strings.ToLower(alias.Family))
	case term.ID != "" || term.SSMParameter != "":
		return "it may have been deregistered, be in another region, not be shared with this account, or not be for " +
			"x86_64 or arm64"
	case term.Name != "" && term.Owner == "":
		return "without owner only images of this account and of amazon are found; set owner to the account that " +
			"publishes it"
	case term.Name != "":
		return "check the name, which is not the Name tag, and that the owner shares the image with this account"
	default:
		return "tag an image of this region and account so"
	}
}
