package schedule

import (
	"encoding/binary"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/resource"
)

// stack is portions that packing can't tell apart.
type stack struct {
	pack.Stack
	site, loose *site
	portions    []*portion
	like        *like
}

// stacker turns portions into stacks.
type stacker struct {
	l      *ledger
	wishes bool
	ports  []cluster.Port
	// portOf are the places in ports, byNumber those of a number.
	portOf   map[cluster.Port]int32
	byNumber map[int32][]cluster.Port
	opens    []openKey
	values   map[openKey][]string
	likes    map[string]*like
	order    []*like
	avoid    bool // some pool has taints that pods should rather avoid
}

// openKey is a label that a pool leaves open and some pod asks for.
type openKey struct {
	market int
	key    string
}

// openDigits bounds the number of values of such a label, 4096, that pods are kept apart by.
const openDigits = 12

// stackKey tells stacks apart.
type stackKey struct {
	need        resource.Vector
	site, loose *site
	like        *like
	rank        int32
	marks       string
}

func (s *stacker) stacks(portions []*portion) []*stack {
	s.likes, s.values = make(map[string]*like), make(map[openKey][]string)
	s.portOf, s.byNumber = make(map[cluster.Port]int32), make(map[int32][]cluster.Port)
	for _, p := range portions {
		s.collect(p)
	}
	byKey := make(map[stackKey]*stack)
	var out []*stack
	for _, p := range portions {
		if p.units == 0 {
			continue
		}
		marks := s.marks(p)
		key := stackKey{p.party.need, p.site, p.loose, s.like(p), rank(p.party), string(marksText(&marks))}
		st := byKey[key]
		if st == nil {
			st = &stack{site: p.site, loose: p.loose, like: key.like,
				Stack: pack.Stack{Need: p.party.need, Rank: key.rank, Marks: marks}}
			byKey[key] = st
			out = append(out, st)
		}
		st.Count += p.units
		st.portions = append(st.portions, p)
	}
	return out
}

func rank(p *party) int32 {
	highest := p.parts[0].kind.class.Priority
	for _, part := range p.parts {
		highest = max(highest, part.kind.class.Priority)
	}
	return highest
}

// collect numbers the ports and the open labels that pods ask for.
func (s *stacker) collect(p *portion) {
	for _, part := range p.party.parts {
		for _, port := range part.kind.class.Ports {
			if _, known := s.portOf[port]; !known {
				s.portOf[port] = int32(len(s.ports))
				s.ports = append(s.ports, port)
				s.byNumber[port.Number] = append(s.byNumber[port.Number], port)
			}
		}
	}
	for number, wants := range p.site.wants {
		for i := range wants {
			for _, label := range wants[i].open {
				key := openKey{number, label.Key}
				if s.values[key] == nil {
					s.opens = append(s.opens, key)
				}
				if !slices.Contains(s.values[key], label.Value) {
					s.values[key] = append(s.values[key], label.Value)
				}
			}
		}
	}
}

// marks turns what keeps pods from sharing a node into numbers: rules about the hostname, ports, and labels that pods
// want different values of.
func (s *stacker) marks(p *portion) pack.Marks {
	var m pack.Marks
	rules := int32(len(s.l.rules))
	for _, part := range p.party.parts {
		for _, id := range part.kind.carries {
			t := &s.l.rules[id]
			if !s.l.keys[t.key].host {
				continue
			}
			switch t.rule.Kind {
			case cluster.AntiAffinity:
				m.Shuns = append(m.Shuns, id)
			case cluster.Spread:
				m.Caps = append(m.Caps, pack.Cap{ID: id, Most: int32(t.rule.MaxSkew)})
			}
		}
		for _, id := range part.kind.counted {
			t := &s.l.rules[id]
			if !s.l.keys[t.key].host || !t.hard || !t.pending {
				continue
			}
			switch t.rule.Kind {
			case cluster.AntiAffinity:
				m.Shunned = append(m.Shunned, id)
			case cluster.Spread:
				m.Counts = append(m.Counts, id)
			}
		}
		for _, port := range part.kind.class.Ports {
			m.Shuns = append(m.Shuns, rules+s.portOf[port])
			for _, other := range s.byNumber[port.Number] {
				if port.Conflicts(other) {
					m.Shunned = append(m.Shunned, rules+s.portOf[other])
				}
			}
		}
	}
	s.labelMarks(p, &m, rules+int32(len(s.ports)))
	m.Shuns, m.Shunned = sortedSet(m.Shuns), sortedSet(m.Shunned)
	m.Counts = sortedSet(m.Counts)
	slices.SortFunc(m.Caps, func(a, b pack.Cap) int { return int(a.ID - b.ID) })
	m.Caps = slices.Compact(m.Caps)
	return m
}

// labelMarks keeps pods apart that want different values of a label that the pool leaves open.
func (s *stacker) labelMarks(p *portion, m *pack.Marks, first int32) {
	for number, wants := range p.site.wants {
		for _, w := range wants {
			for _, label := range w.open {
				s.colour(m, first, openKey{number, label.Key}, label.Value)
			}
		}
	}
}

// colour marks a value of a key so that any two different values shun each other: by the digits of its number, two marks a
// digit, because there may be hundreds of values.
func (s *stacker) colour(m *pack.Marks, first int32, key openKey, value string) {
	at := slices.Index(s.opens, key)
	number := slices.Index(s.values[key], value)
	for digit := range openDigits {
		id := first + int32((at*openDigits+digit)*2)
		if number>>digit&1 == 1 {
			m.Shuns, m.Shunned = append(m.Shuns, id), append(m.Shunned, id+1)
		} else {
			m.Shuns, m.Shunned = append(m.Shuns, id+1), append(m.Shunned, id)
		}
	}
}

func sortedSet(list []int32) []int32 {
	slices.Sort(list)
	return slices.Compact(list)
}

func marksText(m *pack.Marks) []byte {
	var text []byte
	for _, list := range [][]int32{m.Shuns, m.Shunned, m.Counts} {
		text = append(signature(text, list, nil, nil), 0xff, 0xff, 0xff, 0xff)
	}
	for _, c := range m.Caps {
		text = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(text, uint32(c.ID)), uint32(c.Most))
	}
	return text
}
