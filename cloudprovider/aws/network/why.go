package network

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// WhyNoSubnets says, for a class that selects no subnet, what there is instead and what to do.
func (f *Finder) WhyNoSubnets(ctx context.Context, class *awsv1.EC2NodeClass) string {
	var wanted []wish
	for _, t := range class.SubnetSelectorTermsIn(f.cluster) {
		wanted = append(wanted, wish{id: t.ID, tags: t.Tags})
	}
	filters, where := f.neighbourhood(ctx)
	list, err := f.describeSubnets(ctx, filters)
	there := make([]thing, 0, len(list))
	for _, s := range list {
		there = append(there, thing{id: deref(s.SubnetId), tags: tagMap(s.Tags)})
	}
	why := reason{one: "subnet", many: "subnets", where: where}
	return why.say(wanted, there, err == nil) + "; tag the subnets that nodes should stand in, or change " +
		"spec.subnetSelectorTerms"
}

// WhyNoSecurityGroups says, for a class that selects no security group, what there is instead and what to do.
func (f *Finder) WhyNoSecurityGroups(ctx context.Context, class *awsv1.EC2NodeClass) string {
	var wanted []wish
	for _, t := range class.SecurityGroupSelectorTermsIn(f.cluster) {
		wanted = append(wanted, wish{id: t.ID, name: t.Name, tags: t.Tags})
	}
	filters, where := f.neighbourhood(ctx)
	list, err := f.describeGroups(ctx, filters)
	there := make([]thing, 0, len(list))
	for _, g := range list {
		there = append(there, thing{id: deref(g.GroupId), name: deref(g.GroupName), tags: tagMap(g.Tags)})
	}
	why := reason{one: "security group", many: "security groups", where: where}
	return why.say(wanted, there, err == nil) + "; tag the security groups that nodes should have, or change " +
		"spec.securityGroupSelectorTerms"
}

// neighbourhood is where alternatives are looked for.
func (f *Finder) neighbourhood(ctx context.Context) ([]ec2types.Filter, string) {
	if id := f.vpc(ctx); id != "" {
		return []ec2types.Filter{filter("vpc-id", id)}, "in the cluster's VPC " + id
	}
	return nil, "in this region"
}

// wish is a term of a selector, and thing something that it could have found.
type wish struct {
	id, name string
	tags     map[string]string
}

type thing struct {
	id, name string
	tags     map[string]string
}

// reason puts into words why nothing was found.
type reason struct{ one, many, where string }

// told is how many terms, values or names one message goes through; the rest is left out.
const told = 3

// say explains the first few terms. If it is not known what is there, it only says what was not found.
func (r reason) say(wanted []wish, there []thing, known bool) string {
	var parts []string
	for i, w := range wanted {
		if i == told {
			parts = append(parts, fmt.Sprintf("%d more terms match none either", len(wanted)-told))
			break
		}
		parts = append(parts, r.missed(w))
		if hint := r.hint(w, there); known && hint != "" && !slices.Contains(parts, hint) {
			parts = append(parts, hint)
		}
	}
	if len(wanted) == 0 {
		parts = append(parts, "no "+r.one+" is selected")
	}
	return strings.Join(parts, "; ")
}

func (r reason) missed(w wish) string {
	switch {
	case w.id != "":
		return fmt.Sprintf("no %s has the id %s", r.one, w.id)
	case w.name != "":
		return fmt.Sprintf("no %s has the name %s", r.one, w.name)
	default:
		return fmt.Sprintf("no %s matches tags %s", r.one, list(w.tags))
	}
}

// hint is what comes nearest to a term that found nothing.
func (r reason) hint(w wish, there []thing) string {
	if len(there) == 0 {
		return fmt.Sprintf("there are no %s %s", r.many, r.where)
	}
	if w.id != "" || w.name != "" {
		return fmt.Sprintf("%s there %s %s", r.where, r.are(len(there)), some(names(there)))
	}
	for _, key := range slices.Sorted(maps.Keys(w.tags)) {
		carriers := with(there, key)
		if len(carriers) == 0 {
			return r.otherTags(there, key)
		}
		if !slices.ContainsFunc(carriers, func(t thing) bool { return matches(w.tags[key], t.tags[key]) }) {
			return fmt.Sprintf("%s %s %s", r.count(carriers), r.where, r.carry(carriers, key))
		}
	}
	return r.nearest(w, there)
}

// otherTags tells what the things carry in place of a tag that none has.
func (r reason) otherTags(there []thing, key string) string {
	none := fmt.Sprintf("none of the %d %s %s carries the tag %s", len(there), r.many, r.where, key)
	common := map[string]int{}
	for _, t := range there {
		for k := range t.tags {
			if k != "Name" && !strings.HasPrefix(k, "aws:") {
				common[k]++
			}
		}
	}
	if len(common) == 0 {
		return none
	}
	keys := slices.SortedFunc(maps.Keys(common), func(a, b string) int {
		return cmp.Or(cmp.Compare(common[b], common[a]), cmp.Compare(a, b))
	})
	carriers := with(there, keys[0])
	return fmt.Sprintf("%s; %s %s", none, r.count(carriers), r.carry(carriers, keys[0]))
}

// nearest tells which thing lacks the fewest of the tags.
func (r reason) nearest(w wish, there []thing) string {
	lacking := func(t thing) (missing []string) {
		for _, key := range slices.Sorted(maps.Keys(w.tags)) {
			if value, ok := t.tags[key]; !ok || !matches(w.tags[key], value) {
				missing = append(missing, key+"="+w.tags[key])
			}
		}
		return missing
	}
	best := slices.MinFunc(there, func(a, b thing) int {
		return cmp.Or(cmp.Compare(len(lacking(a)), len(lacking(b))), cmp.Compare(a.id, b.id))
	})
	missing := lacking(best)
	if len(missing) == 0 {
		// It was tagged since, or is not ready: the next look will tell.
		return ""
	}
	return fmt.Sprintf("each tag is on some %s but no %s %s carries them all, %s lacks %s", r.one, r.one, r.where,
		best.id, some(missing))
}

func (r reason) count(things []thing) string {
	if len(things) == 1 {
		return "1 " + r.one
	}
	return fmt.Sprintf("%d %s", len(things), r.many)
}

// carry tells the values of a tag.
func (r reason) carry(carriers []thing, key string) string {
	values := map[string]bool{}
	for _, t := range carriers {
		values[key+"="+t.tags[key]] = true
	}
	verb := "carry "
	if len(carriers) == 1 {
		verb = "carries "
	}
	return verb + some(slices.Sorted(maps.Keys(values)))
}

func (r reason) are(n int) string {
	if n == 1 {
		return "is only"
	}
	return "are"
}

func with(there []thing, key string) []thing {
	var out []thing
	for _, t := range there {
		if _, ok := t.tags[key]; ok {
			out = append(out, t)
		}
	}
	return out
}

// matches tells whether a value fits a pattern of EC2, in which * stands for anything and ? for one character.
func matches(pattern, value string) bool {
	if pattern == "*" || pattern == value {
		return true
	}
	// The slash means something to path.Match and nothing to EC2.
	hide := strings.NewReplacer("/", "\x00", "[", `\[`)
	ok, err := path.Match(hide.Replace(pattern), strings.ReplaceAll(value, "/", "\x00"))
	return err == nil && ok
}

func names(there []thing) []string {
	var out []string
	for _, t := range there {
		if t.name != "" {
			out = append(out, fmt.Sprintf("%s (%s)", t.id, t.name))
		} else {
			out = append(out, t.id)
		}
	}
	slices.Sort(out)
	return out
}

func list(tags map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, key+"="+tags[key])
	}
	return strings.Join(out, ", ")
}

// some lists the first few and counts the others.
func some(words []string) string {
	if len(words) <= told {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:told], ", "), len(words)-told)
}
