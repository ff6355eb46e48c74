package ec2

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// maxFilterValues is how many values one filter may have.
const maxFilterValues = 200

// attribute gives the values that an item has for a filter's name; false if there is no such filter. It must bear the
// zero item, which is asked whether a filter exists.
type attribute[T any] func(item *T, filter string) ([]string, bool)

// filtered keeps the items that pass all filters. A filter passes an item that has one of its values.
func filtered[T any](items []T, filters []ec2types.Filter, tags func(*T) []ec2types.Tag, attr attribute[T]) ([]T,
	*wire.Error) {
	var none T
	for _, f := range filters {
		name := aws.ToString(f.Name)
		if _, ok := attr(&none, name); !ok && !isTagFilter(name) {
			return nil, wire.Errorf("InvalidParameterValue", "The filter '%s' is invalid", name)
		}
		if len(f.Values) > maxFilterValues {
			return nil, wire.Errorf("FilterLimitExceeded", "The maximum number of filter values specified on a "+
				"single call is %d", maxFilterValues)
		}
	}
	kept := make([]T, 0, len(items))
	for i := range items {
		if passes(&items[i], filters, tags, attr) {
			kept = append(kept, items[i])
		}
	}
	return kept, nil
}

func isTagFilter(name string) bool {
	return strings.HasPrefix(name, "tag:") || name == "tag-key" || name == "tag-value"
}

func passes[T any](item *T, filters []ec2types.Filter, tags func(*T) []ec2types.Tag, attr attribute[T]) bool {
	for _, f := range filters {
		values, ok := attr(item, aws.ToString(f.Name))
		if !ok {
			values = tagValues(tags(item), aws.ToString(f.Name))
		}
		if !slices.ContainsFunc(values, func(v string) bool { return anyMatches(f.Values, v) }) {
			return false
		}
	}
	return true
}

// tagValues are the values of an item for tag:KEY, tag-key and tag-value.
func tagValues(tags []ec2types.Tag, filter string) []string {
	key, byKey := strings.CutPrefix(filter, "tag:")
	var values []string
	for _, t := range tags {
		switch {
		case byKey && aws.ToString(t.Key) == key, filter == "tag-value":
			values = append(values, aws.ToString(t.Value))
		case filter == "tag-key":
			values = append(values, aws.ToString(t.Key))
		}
	}
	return values
}

func anyMatches(patterns []string, value string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return wildcard(p, value) })
}

// wildcard matches EC2's patterns: * is any text, ? one character, \ takes the next character as it is.
func wildcard(pattern, text string) bool {
	// star and mark are where to go on when the text does not fit any more: the last star takes one character more.
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p+1 < len(pattern) && pattern[p] == '\\' && pattern[p+1] == text[t]:
			p, t = p+2, t+1
		case p < len(pattern) && pattern[p] != '\\' && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// str is the value of an optional text.
func str(p *string) []string {
	if p == nil {
		return nil
	}
	return []string{*p}
}

func boolean(p *bool) []string { return []string{strconv.FormatBool(aws.ToBool(p))} }

func number(p *int32) []string { return []string{strconv.Itoa(int(aws.ToInt32(p)))} }

func timestamp(p *time.Time) []string {
	if p == nil {
		return nil
	}
	return []string{p.UTC().Format("2006-01-02T15:04:05.000Z")}
}
