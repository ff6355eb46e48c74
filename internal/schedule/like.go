package schedule

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

// avoidance is the weight of a taint that pods should rather avoid, beside wishes of 1 to 100.
const avoidance = 50

// like is what pods would like of a node.
type like struct {
	number      int
	wishes      []cluster.Wish
	near        require.Set
	tolerations []cluster.Toleration
}

// like finds what a portion's pods would like; nil if they don't care.
func (s *stacker) like(p *portion) *like {
	if !s.wishes {
		return nil
	}
	class := p.party.parts[0].kind.class
	var text strings.Builder
	for i := range class.Wishes {
		if w := &class.Wishes[i]; w.Rule == nil {
			text.WriteString(strconv.Itoa(int(w.Weight)))
			text.WriteString(w.Term.String())
			text.WriteByte('|')
		} else if w.Rule.Topology != cluster.HostnameLabel {
			text.WriteString(strconv.Itoa(int(w.Weight)))
			text.WriteString(w.Rule.Topology)
			text.WriteByte('|')
		}
	}
	if len(p.near) > 0 {
		text.WriteString(p.near.String())
	}
	if s.avoid {
		text.WriteString(tolerationsText(class))
	} else if text.Len() == 0 {
		return nil
	}
	l := s.likes[text.String()]
	if l == nil {
		l = &like{number: len(s.order), wishes: class.Wishes, near: p.near}
		if s.avoid {
			l.tolerations = class.Tolerations
		}
		s.likes[text.String()] = l
		s.order = append(s.order, l)
	}
	return l
}

// taste is what some pods would like. Offerings that no wish tells apart are of one sort.
type taste struct {
	list  []*like
	keys  []string // labels by which wishes tell nodes apart
	avoid bool
	// sorts numbers the sorts, first has an offering of each, of says which sort each offering of a market is, met how far
	// each sort meets each like.
	sorts map[string]int32
	first []row
	of    map[*market][]int32
	met   [][]float32
}

func newTaste(list []*like, avoid bool) *taste {
	t := &taste{list: list, avoid: avoid, sorts: make(map[string]int32), of: make(map[*market][]int32)}
	keys := make(map[string]bool)
	for _, l := range list {
		for i := range l.wishes {
			if w := &l.wishes[i]; w.Rule != nil {
				keys[w.Rule.Topology] = true
			} else {
				for _, e := range w.Term {
					keys[e.Key] = true
				}
			}
		}
	}
	t.keys = slices.Sorted(maps.Keys(keys))
	t.met = make([][]float32, len(list))
	return t
}

// keysOf are the keys by which wishes tell offerings of the market apart: none has a label that the catalog does not know.
func (t *taste) keysOf(m *market) []string {
	var out []string
	index := m.pool.Catalog.Index()
	for _, key := range t.keys {
		if index.Knows(key) {
			out = append(out, key)
		}
	}
	return out
}

// sortsOf says which sort each offering of the market is.
func (t *taste) sortsOf(m *market) []int32 {
	if of, known := t.of[m]; known {
		return of
	}
	of, keys := make([]int32, len(m.room)), t.keysOf(m)
	var text []byte
	for i := range m.pool.Catalog.Offerings {
		text = strconv.AppendInt(text[:0], int64(m.number), 10)
		for _, key := range keys {
			value, present := m.pool.Catalog.Offerings[i].Label(key)
			text = strconv.AppendBool(append(append(text, 0), value...), present)
		}
		sort, known := t.sorts[string(text)]
		if !known {
			sort = int32(len(t.first))
			t.sorts[string(text)] = sort
			t.first = append(t.first, row{m, i})
		}
		of[i] = sort
	}
	t.of[m] = of
	return of
}

// fondness says how far a sort meets a like.
func (t *taste) fondness(like int, sort int32) float32 {
	for len(t.met[like]) < len(t.first) {
		r := t.first[len(t.met[like])]
		t.met[like] = append(t.met[like], t.list[like].meets(r.m, r.i, t.avoid))
	}
	return t.met[like][sort]
}

// same reports whether no wish tells two offerings of a market apart.
func (t *taste) same(m *market, i, j int) bool {
	if len(t.list) == 0 {
		return true
	}
	of := t.sortsOf(m)
	return of[i] == of[j]
}

// likes says, for each like, how far each offering meets it.
func (t *taste) likes(rows []row) [][]float32 {
	out := make([][]float32, len(t.list))
	for _, r := range rows {
		if len(t.list) > 0 {
			t.sortsOf(r.m)
		}
	}
	for n := range t.list {
		out[n] = make([]float32, len(rows))
		for i, r := range rows {
			out[n][i] = t.fondness(n, t.of[r.m][r.i])
		}
	}
	return out
}

// fond finds, for a content that was bought as an offering, the sorts that meet its wishes no less.
func (t *taste) fond(m *market, own int, content []wished) []bool {
	if len(content) == 0 {
		return nil
	}
	of := t.sortsOf(m)
	score := func(sort int32) (sum float32) {
		for _, w := range content {
			sum += float32(w.count) * t.fondness(w.like, sort)
		}
		return sum
	}
	out, least := make([]bool, len(t.first)), score(of[own])
	for sort := range out {
		out[sort] = t.first[sort].m == m && score(int32(sort)) >= least-1e-4
	}
	return out
}

// wished is how many pods have a like.
type wished struct{ like, count int }

// meets says how far an offering meets the wishes: 0 not at all, 1 completely.
func (l *like) meets(m *market, row int, avoid bool) float32 {
	label := func(key string) (string, bool) {
		if value, ok := m.fixed.Get(key); ok {
			return value, true
		}
		return m.pool.Catalog.Offerings[row].Label(key)
	}
	met, all := int32(0), int32(0)
	for i := range l.wishes {
		w := &l.wishes[i]
		if w.Rule != nil && w.Rule.Topology == cluster.HostnameLabel {
			continue
		}
		all += w.Weight
		ok := false
		if w.Rule == nil {
			_, ok = w.Term.Miss(label)
		} else if near, chosen := l.near.Get(w.Rule.Topology); chosen {
			value, present := label(w.Rule.Topology)
			ok = near.Matches(value, present)
		}
		if ok {
			met += w.Weight
		}
	}
	if avoid {
		all += avoidance
		if !rather(l.tolerations, m.pool.Template.Taints) {
			met += avoidance
		}
	}
	if all == 0 {
		return 0
	}
	return float32(met) / float32(all)
}

// rather reports whether a taint asks pods with the tolerations to go elsewhere if they can.
func rather(tolerations []cluster.Toleration, taints []cluster.Taint) bool {
	for _, t := range taints {
		if t.Effect != cluster.PreferNoSchedule {
			continue
		}
		ok := false
		for _, tol := range tolerations {
			ok = ok || tol.Tolerates(t)
		}
		if !ok {
			return true
		}
	}
	return false
}
