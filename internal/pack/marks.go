package pack

import "slices"

// register keeps who is on a node, as far as marks are concerned. It is emptied by moving to the next round, so that
// thousands of nodes can be tried with one register.
type register struct {
	rounds  []uint32 // by id: the round in which the entry was last written
	entries []entry
	round   uint32
}

// entry is the state of one id on a node.
type entry struct {
	shuns, shunned int32 // pods that shun the id, pods that are shunned under it
	counts         int32 // pods that count for it
	most           int32 // the least cap, valid if capped
	capped         bool
}

func newRegister(ids int) *register {
	return &register{rounds: make([]uint32, ids), entries: make([]entry, ids), round: 1}
}

// clear empties the node.
func (r *register) clear() {
	r.round++
	if r.round == 0 {
		clear(r.rounds)
		r.round = 1
	}
}

func (r *register) at(id int32) *entry {
	if r.rounds[id] != r.round {
		r.rounds[id], r.entries[id] = r.round, entry{}
	}
	return &r.entries[id]
}

// allows says how many pods of the stack, at most limit, the marks let onto the node.
func (r *register) allows(s *Stack, solo bool, limit int) int {
	n := int32(min(limit, 1<<30))
	if solo {
		n = min(n, 1)
	}
	for _, id := range s.Shuns {
		if r.at(id).shunned > 0 {
			return 0
		}
	}
	for _, id := range s.Shunned {
		if r.at(id).shuns > 0 {
			return 0
		}
	}
	for _, c := range s.Caps {
		e := r.at(c.ID)
		if e.counts > c.Most {
			return 0
		}
		if holds(s.Counts, c.ID) {
			n = min(n, c.Most-e.counts)
		}
	}
	for _, id := range s.Counts {
		if e := r.at(id); e.capped {
			n = min(n, e.most-e.counts)
		}
	}
	return int(max(n, 0))
}

// add puts pods of the stack on the node.
func (r *register) add(s *Stack, n int) {
	for _, id := range s.Shuns {
		r.at(id).shuns += int32(n)
	}
	for _, id := range s.Shunned {
		r.at(id).shunned += int32(n)
	}
	for _, c := range s.Caps {
		if e := r.at(c.ID); !e.capped || c.Most < e.most {
			e.capped, e.most = true, c.Most
		}
	}
	for _, id := range s.Counts {
		r.at(id).counts += int32(n)
	}
}

// clash reports whether no pod of the one stack shares a node with a pod of the other, counts aside. It takes about as long as
// the shorter of their lists.
func (m *model) clash(a, b int) bool {
	x, y := &m.p.Stacks[a], &m.p.Stacks[b]
	return overlap(x.Shuns, y.Shunned) || overlap(y.Shuns, x.Shunned)
}

// overlap reports whether two sorted lists have an id in common.
func overlap(a, b []int32) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	const steps = 16 // of a search in a list of ids
	if steps*len(a) >= len(b) {
		return meets(a, b)
	}
	for _, id := range a {
		if _, found := slices.BinarySearch(b, id); found {
			return true
		}
	}
	return false
}

// holds reports whether a sorted list has the id.
func holds(list []int32, id int32) bool {
	for _, x := range list {
		if x >= id {
			return x == id
		}
	}
	return false
}
