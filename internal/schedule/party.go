package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// party is pods that look for a new node together: mostly each by itself, in companies where affinity wants several on
// one node.
type party struct {
	parts []part
	// units is how many companies there are; need is what one of them asks for.
	units int
	need  resource.Vector
}

// part is how many pods of a kind belong to a company.
type part struct {
	kind  *kind
	count int
}

func (p *party) classes() []*cluster.PodClass {
	out := make([]*cluster.PodClass, len(p.parts))
	for i := range p.parts {
		out[i] = p.parts[i].kind.class
	}
	return out
}

// parties makes companies of the pods that must share a node with others, and lets the rest go alone. Kinds whose
// affinity nobody can meet are left out.
//
// Each pod is in at most one company. That holds because a kind joins once at most: whoever is in a company is taken, as its
// leader, as one that follows a leader or as one of several equals, and nobody else looks at it again.
func parties(l *ledger, sh *shop, kinds []*kind) []*party {
	var out []*party
	taken, follows := make(map[*kind]bool), make(map[*kind]bool)
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k *kind) bool {
		if len(k.pods) == 0 || k.doomed { // whoever has nothing to hope for must not change what others get
			return true
		}
		if len(k.exclusive) == 0 {
			return false
		}
		// Whoever can't be placed anyway must not keep the volume from others.
		return !sh.site([]*cluster.PodClass{k.class}, nil).holds(&k.class.Requests) || !l.volumes.claim(k.exclusive)
	})
	for _, k := range kinds {
		if l.clings(k) && !k.attached {
			if follows[k] = true; k.lone {
				k.why = &hurdle{rule: l.clinging(k)}
			}
		}
	}
	// Pods that need each other come first. Whoever could go with them or with others goes with them: were it elsewhere, they would
	// have to follow it to where there may be no room.
	for _, founds := range []bool{true, false} {
		for _, k := range kinds {
			if follows[k] && !k.lone && !taken[k] && founds == l.founds(k) {
				out = append(out, l.company(sh, k, kinds, taken)...)
			}
		}
	}
	for _, k := range kinds {
		if n := k.ready() - promised(out, k); n > 0 && !follows[k] {
			out = append(out, &party{parts: []part{{k, 1}}, units: n, need: k.class.Requests})
		}
	}
	slices.SortStableFunc(out, func(a, b *party) int { return compareKinds(a.parts[0].kind, b.parts[0].kind) })
	return out
}

// ready is how many of the kind's pods may be given a place at once.
func (k *kind) ready() int {
	if len(k.exclusive) > 0 {
		return min(len(k.pods), 1)
	}
	return len(k.pods)
}

// promised counts the pods of a kind that belong to companies.
func promised(parties []*party, k *kind) int {
	n := 0
	for _, p := range parties {
		for _, part := range p.parts {
			if part.kind == k {
				n += part.count * p.units
			}
		}
	}
	return n
}

// clings reports whether the kind's pods must share a node with others.
func (l *ledger) clings(k *kind) bool {
	return slices.ContainsFunc(k.carries, func(id int32) bool {
		return l.rules[id].rule.Kind == cluster.Affinity && l.keys[l.rules[id].key].host
	})
}

// founds reports whether the kind's pods are the first of those that they want to share a node with.
func (l *ledger) founds(k *kind) bool { return l.joins(k, k) && !l.somewhere(k) }

// company joins the kind's pods with each other, if they select themselves and nobody else is selected yet, or with
// pods of another kind that are selected.
func (l *ledger) company(sh *shop, k *kind, kinds []*kind, taken map[*kind]bool) []*party {
	if l.founds(k) {
		return l.clan(sh, k, kinds, taken)
	}
	for _, leader := range kinds {
		if leader == k || taken[leader] || len(leader.pods) == 0 || l.clings(leader) || !l.joins(k, leader) || len(leader.class.Unsupported) > 0 {
			continue
		}
		if out := l.together(sh, []part{{leader, 1}, {k, 1}}, 1, k.ready(), leader.ready()); len(out) > 0 {
			taken[leader], taken[k] = true, true
			return out
		}
	}
	k.why = &hurdle{rule: l.clinging(k)}
	return nil
}

// clan makes one company of the kinds that ask to share a node with the same pods, themselves among them: as many of their
// pods as the largest node holds.
func (l *ledger) clan(sh *shop, k *kind, kinds []*kind, taken map[*kind]bool) []*party {
	var parts []part
	for _, other := range kinds {
		same := l.joins(other, k) && !taken[other] && !other.lone && len(other.class.Unsupported) == 0
		if other != k && (!same || len(other.pods) == 0) {
			continue
		}
		next := append(slices.Clone(parts), part{other, 1})
		if st := sh.site((&party{parts: next}).classes(), require.Set{}); len(st.tops) > 0 {
			for n := min(other.ready(), l.crowd(next, len(next)-1)); n > 0; n-- {
				if need := needOf(next, len(next)-1, n); st.holds(&need) {
					next[len(next)-1].count = n
					parts = next
					taken[other] = true
					break
				}
			}
		}
		if len(parts) == 0 || parts[len(parts)-1].kind != other || parts[len(parts)-1].count < len(other.pods) {
			other.why = &hurdle{rule: l.clinging(other)}
		}
	}
	if len(parts) == 0 {
		return nil
	}
	var need resource.Vector
	for _, p := range parts {
		need = need.Add(p.kind.class.Requests.Times(int64(p.count)))
	}
	return []*party{{parts: parts, units: 1, need: need}}
}

// joins reports whether pods of a kind that clings may share k's node: k's pods are what all of its rules ask for.
func (l *ledger) joins(other, k *kind) bool {
	rules := l.clingings(other)
	return len(rules) > 0 && !slices.ContainsFunc(rules, func(id int32) bool {
		_, chosen := slices.BinarySearch(k.counted, id)
		return !chosen
	})
}

// clingings are the rules by which the kind's pods must share a node with others, sorted.
func (l *ledger) clingings(k *kind) []int32 {
	var out []int32
	for _, id := range k.carries {
		if t := &l.rules[id]; t.rule.Kind == cluster.Affinity && l.keys[t.key].host {
			out = append(out, id)
		}
	}
	return out
}

// somewhere reports whether a pod that the kind's affinity to a node selects has a place already.
func (l *ledger) somewhere(k *kind) bool {
	return slices.ContainsFunc(k.carries, func(id int32) bool {
		t := &l.rules[id]
		return t.rule.Kind == cluster.Affinity && l.keys[t.key].host && t.total > 0
	})
}

func (l *ledger) clinging(k *kind) *cluster.Rule {
	for _, id := range k.carries {
		if t := &l.rules[id]; t.rule.Kind == cluster.Affinity && l.keys[t.key].host {
			return t.rule
		}
	}
	return nil
}

// together shares total pods of one of the parts out over the companies, as evenly as the largest node allows. Leaders
// without followers go alone.
func (l *ledger) together(sh *shop, parts []part, of, total, companies int) []*party {
	var out []*party
	model := party{parts: parts}
	st := sh.site(model.classes(), require.Set{})
	for total > 0 && companies > 0 {
		n := (total + companies - 1) / companies
		for n = min(n, l.crowd(parts, of)); n > 0; n-- {
			if need := needOf(parts, of, n); st.holds(&need) {
				break
			}
		}
		if n == 0 {
			break
		}
		units := min(total/n, companies)
		p := &party{parts: slices.Clone(parts), units: units, need: needOf(parts, of, n)}
		p.parts[of].count = n
		out = append(out, p)
		total, companies = total-units*n, companies-units
	}
	return out
}

// crowd is how many pods of one of the parts can share a node with each other and with the rest of the company, room
// aside: ports, volumes for one pod only, anti-affinity and spread over hosts bound it.
func (l *ledger) crowd(parts []part, of int) int {
	k, most := parts[of].kind, 1<<30
	if len(k.class.Ports) > 0 || len(k.exclusive) > 0 {
		most = 1
	}
	for i := range parts {
		other := parts[i].kind
		if i != of && clash(k.class.Ports, other.class.Ports) {
			return 0
		}
		for _, id := range k.carries {
			_, chosen := slices.BinarySearch(other.counted, id)
			rule := l.rules[id].rule
			switch {
			case !chosen:
			case rule.Kind == cluster.AntiAffinity && i != of:
				return 0
			case rule.Kind == cluster.AntiAffinity:
				most = 1
			case rule.Kind == cluster.Spread && l.keys[l.rules[id].key].host && i == of:
				most = min(most, rule.MaxSkew)
			}
		}
		for _, id := range other.carries {
			if _, chosen := slices.BinarySearch(k.counted, id); chosen && i != of && l.rules[id].rule.Kind == cluster.AntiAffinity {
				return 0
			}
		}
	}
	return most
}

func needOf(parts []part, of, n int) resource.Vector {
	var sum resource.Vector
	for i, p := range parts {
		count := p.count
		if i == of {
			count = n
		}
		sum = sum.Add(p.kind.class.Requests.Times(int64(count)))
	}
	return sum
}
