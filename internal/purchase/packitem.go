package purchase

import (
	"encoding/binary"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// packItem is shares that packing can't tell apart.
type packItem struct {
	pack.Item
	feasible, anyDomain *market.FeasibleSet
	shares              []*domainShare
	preferences         *podPreferences
}

// itemBuilder turns shares into items.
type itemBuilder struct {
	counts         *topology.Counts
	usePreferences bool
	ports          []cluster.Port
	// portOf are the places in ports, byNumber those of a number.
	portOf         map[cluster.Port]int32
	byNumber       map[int32][]cluster.Port
	openKeys       []openLabelKey
	values         map[openLabelKey][]string
	preferences    map[string]*podPreferences
	preferenceList []*podPreferences
	avoidTaints    bool // some pool has taints that pods should rather avoid
}

// openLabelKey is a label that a pool leaves open and some pod asks for.
type openLabelKey struct {
	market int
	key    string
}

// openDigits bounds the number of values of such a label, 4096, that pods are kept apart by.
const openDigits = 12

// itemKey tells items apart.
type itemKey struct {
	need                resource.Vector
	feasible, anyDomain *market.FeasibleSet
	preferences         *podPreferences
	rank                int32
	marks               string
}

func (ib *itemBuilder) items(portions []*domainShare) []*packItem {
	ib.preferences, ib.values = make(map[string]*podPreferences), make(map[openLabelKey][]string)
	ib.portOf, ib.byNumber = make(map[cluster.Port]int32), make(map[int32][]cluster.Port)
	for _, p := range portions {
		ib.collect(p)
	}
	byKey := make(map[itemKey]*packItem)
	var out []*packItem
	for _, p := range portions {
		if p.units == 0 {
			continue
		}
		marks := ib.marks(p)
		key := itemKey{p.group.need, p.feasible, p.anyDomain, ib.preferencesOf(p), groupPriority(p.group),
			string(marksText(&marks))}
		it := byKey[key]
		if it == nil {
			it = &packItem{feasible: p.feasible, anyDomain: p.anyDomain, preferences: key.preferences,
				Item: pack.Item{Need: p.group.need, Rank: key.rank, Marks: marks}}
			byKey[key] = it
			out = append(out, it)
		}
		it.Count += p.units
		it.shares = append(it.shares, p)
	}
	return out
}

func groupPriority(g *podGroup) int32 {
	highest := g.members[0].podSet.Class.Priority
	for _, member := range g.members {
		highest = max(highest, member.podSet.Class.Priority)
	}
	return highest
}

// collect numbers the ports and the open labels that pods ask for.
func (ib *itemBuilder) collect(p *domainShare) {
	for _, member := range p.group.members {
		for _, port := range member.podSet.Class.Ports {
			if _, known := ib.portOf[port]; !known {
				ib.portOf[port] = int32(len(ib.ports))
				ib.ports = append(ib.ports, port)
				ib.byNumber[port.Number] = append(ib.byNumber[port.Number], port)
			}
		}
	}
	for number, matches := range p.feasible.Matches {
		for i := range matches {
			for _, label := range matches[i].OpenLabels {
				key := openLabelKey{number, label.Key}
				if ib.values[key] == nil {
					ib.openKeys = append(ib.openKeys, key)
				}
				if !slices.Contains(ib.values[key], label.Value) {
					ib.values[key] = append(ib.values[key], label.Value)
				}
			}
		}
	}
}

// marks turns what keeps pods from sharing a node into numbers: rules about the hostname, ports, and labels that pods
// want different values of.
func (ib *itemBuilder) marks(p *domainShare) pack.Marks {
	var m pack.Marks
	rules := int32(len(ib.counts.Rules))
	for _, member := range p.group.members {
		for _, id := range member.podSet.Declared {
			t := &ib.counts.Rules[id]
			if !t.OnHostname {
				continue
			}
			switch t.Rule.Kind {
			case cluster.AntiAffinity:
				m.Excludes = append(m.Excludes, id)
			case cluster.Spread:
				m.Caps = append(m.Caps, pack.Cap{ID: id, Most: int32(t.Rule.MaxSkew)})
			}
		}
		for _, id := range member.podSet.SelectedBy {
			t := &ib.counts.Rules[id]
			if !t.OnHostname || !t.Required || !t.Pending {
				continue
			}
			switch t.Rule.Kind {
			case cluster.AntiAffinity:
				m.ExcludedAs = append(m.ExcludedAs, id)
			case cluster.Spread:
				m.Counts = append(m.Counts, id)
			}
		}
		for _, port := range member.podSet.Class.Ports {
			m.Excludes = append(m.Excludes, rules+ib.portOf[port])
			for _, other := range ib.byNumber[port.Number] {
				if port.Conflicts(other) {
					m.ExcludedAs = append(m.ExcludedAs, rules+ib.portOf[other])
				}
			}
		}
	}
	ib.labelMarks(p, &m, rules+int32(len(ib.ports)))
	m.Excludes, m.ExcludedAs = sortedSet(m.Excludes), sortedSet(m.ExcludedAs)
	m.Counts = sortedSet(m.Counts)
	slices.SortFunc(m.Caps, func(a, b pack.Cap) int { return int(a.ID - b.ID) })
	m.Caps = slices.Compact(m.Caps)
	return m
}

// labelMarks keeps pods apart that want different values of a label that the pool leaves open.
func (ib *itemBuilder) labelMarks(p *domainShare, m *pack.Marks, first int32) {
	for number, matches := range p.feasible.Matches {
		for _, tm := range matches {
			for _, label := range tm.OpenLabels {
				ib.markValue(m, first, openLabelKey{number, label.Key}, label.Value)
			}
		}
	}
}

// markValue marks a value of a key so that any two different values shun each other: by the digits of its number, two
// marks a digit, because there may be hundreds of values.
func (ib *itemBuilder) markValue(m *pack.Marks, first int32, key openLabelKey, value string) {
	at := slices.Index(ib.openKeys, key)
	number := slices.Index(ib.values[key], value)
	for digit := range openDigits {
		id := first + int32((at*openDigits+digit)*2)
		if number>>digit&1 == 1 {
			m.Excludes, m.ExcludedAs = append(m.Excludes, id), append(m.ExcludedAs, id+1)
		} else {
			m.Excludes, m.ExcludedAs = append(m.Excludes, id+1), append(m.ExcludedAs, id)
		}
	}
}

func sortedSet(list []int32) []int32 {
	slices.Sort(list)
	return slices.Compact(list)
}

func marksText(m *pack.Marks) []byte {
	var text []byte
	for _, list := range [][]int32{m.Excludes, m.ExcludedAs, m.Counts} {
		text = append(topology.AppendIDs(text, list), 0xff, 0xff, 0xff, 0xff)
	}
	for _, c := range m.Caps {
		text = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(text, uint32(c.ID)), uint32(c.Most))
	}
	return text
}
