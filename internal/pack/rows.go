package pack

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Bounds of the linear program: stacks that are alike are joined until there are at most fewRows while it is found out
// which kinds matter, and at most maxRows then; of the marks that pods share, the maxGroups that force the most nodes take
// part. All this only makes the bound a little smaller.
const (
	fewRows   = 80
	maxRows   = 1500
	fineStep  = 0.25
	roughStep = 0.3
	maxGroups = 16
	// anything is a step with which all needs round to the same: only sites and shared marks tell rows apart then.
	anything = 50
)

// row is stacks that the linear program does not tell apart.
type row struct {
	need   []float64 // of a pod, on average
	pods   float64
	groups []int32 // the shared marks that bound it, each a dimension of its own
	shares []float64
	site   int32
	stack  int // the first
}

// program is the linear program: cover the rows with fractions of nodes.
type program struct {
	m      *model
	rows   []row
	of     []int32 // by stack: its row, −1 for those that nothing holds
	groups int     // how many shared marks are dimensions
	d      int     // m.d + groups
	scale  []float64

	constant []bool // by dimension: all stacks need the same of it
}

// newProgram makes at most so many rows, if that is possible with steps up to the widest.
func newProgram(m *model, most int, widest float64, groups int) *program {
	pr := &program{m: m}
	shared := m.sharedMarks(groups)
	pr.groups = len(shared.ids)
	pr.d = m.d + pr.groups
	pr.measure()
	held := make([]bool, len(m.p.Stacks))
	for _, list := range m.holds {
		for _, s := range list {
			held[s] = true
		}
	}
	for step := 0.0; ; step = max(1.5*step, 0.02) {
		pr.join(held, shared, step)
		if len(pr.rows) <= most || step > min(widest, anything) {
			return pr
		}
	}
}

// measure finds a unit for each dimension in which amounts are neither huge nor tiny.
func (pr *program) measure() {
	m := pr.m
	pr.scale, pr.constant = make([]float64, m.d), make([]bool, m.d)
	for j := range pr.scale {
		pr.constant[j] = true
		for s := range m.p.Stacks {
			pr.constant[j] = pr.constant[j] && m.need[s*m.d+j] == m.need[j]
		}
		pr.scale[j] = 1
		for k := range m.kinds {
			pr.scale[j] = max(pr.scale[j], float64(m.roomOf(k)[j]))
		}
	}
}

// join makes rows of the stacks. Stacks are joined when they have the same site and shared marks and needs that round to
// the same on a logarithmic scale with the step; a step of 0 joins equals only.
func (pr *program) join(held []bool, shared sharedMarks, step float64) {
	m := pr.m
	pr.rows = pr.rows[:0]
	pr.of = make([]int32, len(m.p.Stacks))
	index := make(map[string]int32)
	var key []byte
	for s := range m.p.Stacks {
		pr.of[s] = -1
		if !held[s] {
			continue
		}
		key = binary.AppendUvarint(key[:0], uint64(m.site[s]))
		for _, g := range shared.of[s] {
			key = binary.AppendUvarint(key, uint64(g.group)+1)
			key = binary.AppendUvarint(key, math.Float64bits(g.share))
		}
		key = append(key, 0)
		key = pr.appendShape(key, m.needOf(s), step)
		at, ok := index[string(key)]
		if !ok {
			at = int32(len(pr.rows))
			index[string(key)] = at
			r := row{need: make([]float64, m.d), site: m.site[s], stack: s}
			for _, g := range shared.of[s] {
				r.groups, r.shares = append(r.groups, g.group), append(r.shares, g.share)
			}
			pr.rows = append(pr.rows, r)
		}
		pr.of[s] = at
		pr.rows[at].add(m, s)
	}
	for i := range pr.rows {
		r := &pr.rows[i]
		for j := range r.need {
			r.need[j] /= r.pods * pr.scale[j]
		}
	}
}

// appendShape describes a need up to the step: in what proportion the dimensions are to each other, and, more coarsely,
// how large it all is. Large or small hardly matters to a program with fractions, so long as the proportions are the same.
func (pr *program) appendShape(key []byte, need []int64, step float64) []byte {
	first := 0.0
	for j, x := range need {
		switch {
		case step == 0 || x == 0 || pr.constant[j]:
			key = binary.AppendVarint(key, x)
		case first == 0:
			first = math.Log(float64(x)) + 1
			key = binary.AppendVarint(key, int64(math.Round(first/(8*step))))
		default:
			key = binary.AppendVarint(key, int64(math.Round((math.Log(float64(x))-first)/step)))
		}
	}
	return key
}

func (r *row) add(m *model, s int) {
	n := float64(m.p.Stacks[s].Count)
	r.pods += n
	for j := range r.need {
		r.need[j] += n * m.needf[s*m.d+j]
	}
}

// sharedMarks are ids under which pods of several stacks get in each other's way.
type sharedMarks struct {
	ids []int32
	of  [][]groupShare // by stack
}

// groupShare is how much of a node a pod uses up under a shared mark.
type groupShare struct {
	group int32
	share float64
}

// sharedMarks finds the ids that force the most nodes. Under such an id a node is full when the shares of its pods sum
// to one: pods that shun each other have a share of one, pods with a cap of four have a quarter.
func (m *model) sharedMarks(most int) sharedMarks {
	out := sharedMarks{of: make([][]groupShare, len(m.p.Stacks))}
	if m.ids == 0 || most == 0 {
		return out
	}
	forced := make([]float64, m.ids)
	for s := range m.p.Stacks {
		m.sharesOf(s, func(id int32, share float64) {
			forced[id] += share * float64(m.p.Stacks[s].Count)
		})
	}
	for id := range forced {
		if forced[id] > 1 {
			out.ids = append(out.ids, int32(id))
		}
	}
	slices.SortFunc(out.ids, func(a, b int32) int { return cmp.Or(cmp.Compare(forced[b], forced[a]), cmp.Compare(a, b)) })
	out.ids = out.ids[:min(len(out.ids), most)]
	group := make([]int32, m.ids)
	for i, id := range out.ids {
		group[id] = int32(i) + 1
	}
	for s := range m.p.Stacks {
		m.sharesOf(s, func(id int32, share float64) {
			if group[id] > 0 {
				out.of[s] = append(out.of[s], groupShare{group: group[id] - 1, share: share})
			}
		})
	}
	return out
}

// sharesOf names the ids under which the stack's pods get in the way of their own kind.
func (m *model) sharesOf(s int, each func(id int32, share float64)) {
	if !m.marked[s] {
		return
	}
	st := &m.p.Stacks[s]
	for _, id := range st.Shuns {
		if holds(st.Shunned, id) {
			each(id, 1)
		}
	}
	for _, c := range st.Caps {
		if c.Most > 0 && holds(st.Counts, c.ID) && !(holds(st.Shuns, c.ID) && holds(st.Shunned, c.ID)) {
			each(c.ID, 1/float64(c.Most))
		}
	}
}
