package launch

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"
)

// launchGroup is a number of claims that one call launches instances for. Every instance that the call may launch
// serves each of them, so it does not matter who gets which.
type launchGroup struct {
	spec     *launchSpec
	requests []*Request

	// mostOptions is how many options the member with most has.
	mostOptions int
}

// optionKey is what of an option matters to whoever gets the instance.
type optionKey struct{ template, kind, zone string }

func (o *launchOption) key() optionKey { return optionKey{o.Template, o.Type, o.Zone} }

// groupLaunches divides claims with the same launch spec into as few groups as can be. What is asked for a group is
// what its members have in common. Nobody loses much by it: the cheapest type stays the cheapest, and each keeps half
// of its choice at least. What was tried is left out; a claim that has nothing else is in no group.
func groupLaunches(requests []*Request, tried map[optionKey]bool) (out []*launchGroup, done []*Request) {
	type wish struct {
		of    *Request
		order *launchSpec
	}
	var wishes []wish
	for _, q := range requests {
		if s := q.spec.without(tried); s != nil {
			wishes = append(wishes, wish{q, s})
		} else {
			done = append(done, q)
		}
	}
	slices.SortStableFunc(wishes, func(a, b wish) int { return cmp.Compare(len(b.order.Lines), len(a.order.Lines)) })
	for _, w := range wishes {
		if !slices.ContainsFunc(out, func(p *launchGroup) bool { return p.tryJoin(w.of, w.order) }) {
			out = append(out, &launchGroup{spec: w.order, requests: []*Request{w.of},
				mostOptions: len(w.order.Lines)})
		}
	}
	for _, p := range out {
		slices.SortFunc(p.requests, byShortUID)
	}
	return out, done
}

// byShortUID is the one order in which claims are served. It is the order of the marks that instances carry, so that
// whoever finds them later comes to the same result.
func byShortUID(a, q *Request) int {
	return strings.Compare(ownership.ShortUID(string(a.claim.UID)), ownership.ShortUID(string(q.claim.UID)))
}

// tryJoin has the claim join if that does neither it nor the others harm.
func (g *launchGroup) tryJoin(q *Request, s *launchSpec) bool {
	common := g.spec.intersect(s)
	if common == nil || 2*len(common.Lines) < max(g.mostOptions, len(s.Lines)) {
		return false
	}
	first := common.Lines[common.cheapest()].Type
	if first != s.Lines[s.cheapest()].Type || first != g.spec.Lines[g.spec.cheapest()].Type {
		return false
	}
	g.spec, g.requests = common, append(g.requests, q)
	return true
}

// without is the spec without some options; nil if nothing is left.
func (s *launchSpec) without(lines map[optionKey]bool) *launchSpec {
	if len(lines) == 0 {
		return s
	}
	return s.only(func(o *launchOption) bool { return !lines[o.key()] })
}

// intersect is what both specs have; nil if that is nothing.
func (s *launchSpec) intersect(other *launchSpec) *launchSpec {
	if s == other {
		return s
	}
	have := make(map[optionKey]bool, len(other.Lines))
	for i := range other.Lines {
		have[other.Lines[i].key()] = true
	}
	return s.only(func(o *launchOption) bool { return have[o.key()] })
}

// only is the spec with the options that are kept; nil if there are none.
func (s *launchSpec) only(keep func(*launchOption) bool) *launchSpec {
	kept := make([]launchOption, 0, len(s.Lines))
	for i := range s.Lines {
		if keep(&s.Lines[i]) {
			kept = append(kept, s.Lines[i])
		}
	}
	switch len(kept) {
	case 0:
		return nil
	case len(s.Lines):
		return s
	}
	out := *s
	out.Lines, out.templates = kept, map[string]*template.Template{}
	for i := range kept {
		out.templates[kept[i].Template] = s.templates[kept[i].Template]
	}
	return &out
}
