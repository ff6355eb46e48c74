package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// Keys of selectors that are no tags.
const (
	idsKey      = "aws::ids"
	olderIDsKey = "aws-ids"
	nameKey     = "aws::name"
	ownersKey   = "aws::owners"
)

// mostTerms is how many terms a selector of v1 may have.
const mostTerms = 30

// selected is a term of a selector: an id, or tags that must all be there.
type selected struct {
	id   string
	tags map[string]string
}

// terms reads a selector of subnets or security groups. Its parts all had to hold, and a value could list several, of
// which one had to. In v1 the terms are alternatives, and tags hold one value each.
func terms(selector map[string]string) ([]selected, *Problem) {
	ids, tags, special := split(selector)
	if len(special) > 0 {
		return nil, &Problem{Why: "has the key " + special[0] + ", which only amiSelector knows",
			Fix: "select by tags or by " + idsKey}
	}
	if problem := empty(selector); problem != nil {
		return nil, problem
	}
	if len(ids) > 0 && len(tags) > 0 {
		return nil, &Problem{Why: "selects by ids and by tags at once, which one term of v1 can't",
			Fix: "keep one of the two: the ids alone select exactly these"}
	}
	var out []selected
	for _, id := range ids {
		out = append(out, selected{id: id})
	}
	if len(ids) == 0 {
		for _, t := range alternatives(tags) {
			out = append(out, selected{tags: t})
		}
	}
	if len(out) > mostTerms {
		return nil, tooMany(len(out))
	}
	return out, nil
}

// empty finds a key that says nothing.
func empty(selector map[string]string) *Problem {
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if key == "" || len(list(selector[key])) == 0 {
			return &Problem{Why: fmt.Sprintf("has an empty key or value (%q)", key), Fix: "write * for any value"}
		}
	}
	return nil
}

func tooMany(n int) *Problem {
	return &Problem{Why: fmt.Sprintf("means %d alternatives, and v1 takes %d", n, mostTerms),
		Fix: "select by a tag that all of them share"}
}

// imageTerms reads a selector of images.
func imageTerms(selector map[string]string) ([]awsv1.AMISelectorTerm, *Problem) {
	ids, tags, special := split(selector)
	if problem := empty(selector); problem != nil {
		return nil, problem
	}
	if len(ids) > 0 {
		if len(tags) > 0 || slices.Contains(special, nameKey) {
			return nil, &Problem{Why: "selects by ids and by something else at once, which one term of v1 can't",
				Fix: "keep the ids, which select exactly these"}
		}
		var out []awsv1.AMISelectorTerm
		for _, id := range ids {
			out = append(out, awsv1.AMISelectorTerm{ID: id})
		}
		if len(out) > mostTerms {
			return nil, tooMany(len(out))
		}
		return out, nil
	}
	if len(tags) == 0 && !slices.Contains(special, nameKey) {
		return nil, &Problem{Why: "selects by owners only", Fix: "add " + nameKey + ", tags or " + idsKey}
	}
	var out []awsv1.AMISelectorTerm
	for _, name := range orNone(list(selector[nameKey])) {
		for _, owner := range orNone(list(selector[ownersKey])) {
			for _, t := range alternatives(tags) {
				out = append(out, awsv1.AMISelectorTerm{Name: name, Owner: owner, Tags: t})
			}
		}
	}
	if len(out) > mostTerms {
		return nil, tooMany(len(out))
	}
	return out, nil
}

// split sorts the keys of a selector: ids, tags, and the keys that only images know.
func split(selector map[string]string) (ids []string, tags map[string]string, special []string) {
	tags = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		switch key {
		case idsKey, olderIDsKey:
			ids = append(ids, list(selector[key])...)
		case nameKey, ownersKey:
			special = append(special, key)
		default:
			tags[key] = selector[key]
		}
	}
	return ids, tags, special
}

// alternatives are the tags with one value each: every combination of the values that the tags list. Without tags there
// is one, nil.
func alternatives(tags map[string]string) []map[string]string {
	out := []map[string]string{nil}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		var next []map[string]string
		for _, have := range out {
			for _, value := range orNone(list(tags[key])) {
				with := maps.Clone(have)
				if with == nil {
					with = map[string]string{}
				}
				with[key] = value
				next = append(next, with)
			}
		}
		if out = next; len(out) > mostTerms {
			return out // nobody takes so many
		}
	}
	return out
}

// list reads values that are separated by commas.
func list(text string) []string {
	var out []string
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// orNone stands for nothing by an empty text.
func orNone(list []string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	return list
}
