package pack

import "slices"

// nodeMarks keeps who is on a node, as far as marks are concerned. It is emptied by moving to the next round, so that
// thousands of nodes can be tried with one register.
type nodeMarks struct {
	rounds []uint32 // by id: the round in which the entry was last written
	states []markState
	round  uint32
}

// markState is the state of one id on a node.
type markState struct {
	excludes, excluded int32 // pods that exclude the id, pods that are excluded as it
	counts             int32 // pods that count for it
	cap                int32 // the least cap, valid if capped
	capped             bool
}

func newNodeMarks(ids int) *nodeMarks {
	return &nodeMarks{rounds: make([]uint32, ids), states: make([]markState, ids), round: 1}
}

// clear empties the node.
func (m *nodeMarks) clear() {
	m.round++
	if m.round == 0 {
		clear(m.rounds)
		m.round = 1
	}
}

func (m *nodeMarks) at(id int32) *markState {
	if m.rounds[id] != m.round {
		m.rounds[id], m.states[id] = m.round, markState{}
	}
	return &m.states[id]
}

// allows says how many pods of the item, at most limit, the marks let onto the node.
func (m *nodeMarks) allows(s *Item, solo bool, limit int) int {
	n := int32(min(limit, 1<<30))
	if solo {
		n = min(n, 1)
	}
	for _, id := range s.Excludes {
		if m.at(id).excluded > 0 {
			return 0
		}
	}
	for _, id := range s.ExcludedAs {
		if m.at(id).excludes > 0 {
			return 0
		}
	}
	for _, c := range s.Caps {
		e := m.at(c.ID)
		if e.counts > c.Most {
			return 0
		}
		if containsID(s.Counts, c.ID) {
			n = min(n, c.Most-e.counts)
		}
	}
	for _, id := range s.Counts {
		if e := m.at(id); e.capped {
			n = min(n, e.cap-e.counts)
		}
	}
	return int(max(n, 0))
}

// add puts pods of the item on the node.
func (m *nodeMarks) add(s *Item, n int) {
	for _, id := range s.Excludes {
		m.at(id).excludes += int32(n)
	}
	for _, id := range s.ExcludedAs {
		m.at(id).excluded += int32(n)
	}
	for _, c := range s.Caps {
		if e := m.at(c.ID); !e.capped || c.Most < e.cap {
			e.capped, e.cap = true, c.Most
		}
	}
	for _, id := range s.Counts {
		m.at(id).counts += int32(n)
	}
}

// itemsClash reports whether no pod of the one item shares a node with a pod of the other, counts aside. It takes about
// as long as the shorter of their lists.
func (m *model) itemsClash(a, b int) bool {
	x, y := &m.p.Items[a], &m.p.Items[b]
	return overlap(x.Excludes, y.ExcludedAs) || overlap(y.Excludes, x.ExcludedAs)
}

// overlap reports whether two sorted lists have an id in common.
func overlap(a, b []int32) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	const steps = 16 // of a search in a list of ids
	if steps*len(a) >= len(b) {
		return intersects(a, b)
	}
	for _, id := range a {
		if _, found := slices.BinarySearch(b, id); found {
			return true
		}
	}
	return false
}

// containsID reports whether a sorted list has the id.
func containsID(list []int32, id int32) bool {
	for _, x := range list {
		if x >= id {
			return x == id
		}
	}
	return false
}

// sharesOf names the ids under which the item's pods get in the way of their own kind.
func (m *model) sharesOf(s int, each func(id int32, share float64)) {
	if !m.hasMarks[s] {
		return
	}
	st := &m.p.Items[s]
	for _, id := range st.Excludes {
		if containsID(st.ExcludedAs, id) {
			each(id, 1)
		}
	}
	for _, c := range st.Caps {
		if c.Most > 0 && containsID(st.Counts, c.ID) && !(containsID(st.Excludes, c.ID) &&
			containsID(st.ExcludedAs, c.ID)) {
			each(c.ID, 1/float64(c.Most))
		}
	}
}
