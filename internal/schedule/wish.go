package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

// liking is how many companies would like to be in which domains.
type liking struct {
	set   require.Set
	units int
}

// wish shares companies out over the domains that their pods would like. Nothing is held against a domain that they
// don't like: it is only what is taken first where the price is the same.
func (d *dealer) wish(p *party, units int, st *site) []liking {
	if !d.wishes || len(p.parts) != 1 || !d.dreams(p.parts[0].kind) {
		return []liking{{units: units}}
	}
	k := p.parts[0].kind
	counts := make(map[string]int)
	var out []liking
	for range units {
		set := d.favour(k, p, st)
		text := set.String()
		i, known := counts[text]
		if !known {
			i = len(out)
			counts[text] = i
			out = append(out, liking{set: set})
		}
		out[i].units++
	}
	return out
}

// dreams reports whether the kind wishes for something about domains other than a single node.
func (d *dealer) dreams(k *kind) bool {
	return slices.ContainsFunc(k.wishes, func(id int32) bool { return !d.l.keys[d.l.rules[id].key].host })
}

// favour chooses, for each key that the kind's wishes are about, the domain that meets most of them, and counts the pod
// there.
func (d *dealer) favour(k *kind, p *party, st *site) require.Set {
	var out require.Set
	done := make([]bool, len(d.l.keys))
	for _, id := range k.wishes {
		key := d.l.rules[id].key
		if done[key] || d.l.keys[key].host {
			continue
		}
		done[key] = true
		values, _ := d.values(st, d.l.keys[key].key)
		best, bestScore := "", int64(-1)
		for _, value := range values {
			if score := d.score(k, key, value); score > bestScore {
				best, bestScore = value, score
			}
		}
		if bestScore < 0 {
			continue
		}
		out = out.With(d.l.keys[key].key, require.Only(best))
		domain := d.l.domain(key, best)
		for _, id := range k.counted {
			if t := &d.l.rules[id]; t.key == key && !t.hard {
				t.match = raise(t.match, domain, 1, len(d.l.keys[key].names))
			}
		}
	}
	return out
}

// score is the weight of the kind's wishes about the key that the value would meet.
func (d *dealer) score(k *kind, key int32, value string) int64 {
	sum, domain := int64(0), d.l.domain(key, value)
	for i := range k.class.Wishes {
		w := &k.class.Wishes[i]
		if w.Rule == nil {
			if e, asked := w.Term.Get(d.l.keys[key].key); asked && e.Matches(value, true) {
				sum += int64(w.Weight) * 1000
			}
			continue
		}
		t := &d.l.rules[d.l.byRule[w.Rule.Key]]
		if t.key != key {
			continue
		}
		there := int64(count(t.match, domain))
		switch w.Rule.Kind {
		case cluster.Affinity:
			sum += int64(w.Weight) * 1000 * min(there, 1)
		default: // the fewer the better
			sum += int64(w.Weight) * 1000 / (1 + there)
		}
	}
	return sum
}
