package lp

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Bounds of the linear program: items that are alike are joined until there are at most fewRows while it is found out
// which kinds matter, and at most maxRows then; of the marks that pods share, the maxGroups that force the most nodes
// take part. All this only makes the bound a little smaller.
const (
	fewRows   = 80
	maxRows   = 1500
	fineStep  = 0.25
	roughStep = 0.3
	maxGroups = 16
	// roundAll is a step with which all needs round to the same: only sets and shared marks tell rows apart then.
	roundAll = 50
)

// demandRow is items that the linear program does not tell apart.
type demandRow struct {
	need      []float64 // of a pod, on average
	pods      float64
	groups    []int32 // the shared marks that bound it, each a dimension of its own
	shares    []float64
	feasible  int32
	firstItem int // the first
}

// linearProgram is the linear program: cover the rows with fractions of nodes.
type linearProgram struct {
	m      *Problem
	rows   []demandRow
	rowOf  []int32 // by item: its row, −1 for those that nothing holds
	groups int     // how many shared marks are dimensions
	d      int     // m.Dims + groups
	scale  []float64

	constant []bool // by dimension: all items need the same of it
}

// newLinearProgram makes at most so many rows, if that is possible with steps up to the widest.
func newLinearProgram(m *Problem, most int, widest float64, groups int) *linearProgram {
	lp := &linearProgram{m: m}
	shared := m.sharedMarks(groups)
	lp.groups = len(shared.ids)
	lp.d = m.Dims + lp.groups
	lp.measure()
	held := make([]bool, len(m.Counts))
	for _, list := range m.FittingItems {
		for _, s := range list {
			held[s] = true
		}
	}
	for step := 0.0; ; step = max(1.5*step, 0.02) {
		lp.joinItems(held, shared, step)
		if len(lp.rows) <= most || step > min(widest, roundAll) {
			return lp
		}
	}
}

// measure finds a unit for each dimension in which amounts are neither huge nor tiny.
func (lp *linearProgram) measure() {
	m := lp.m
	lp.scale, lp.constant = make([]float64, m.Dims), make([]bool, m.Dims)
	for j := range lp.scale {
		lp.constant[j] = true
		for s := range m.Counts {
			lp.constant[j] = lp.constant[j] && m.Needs[s*m.Dims+j] == m.Needs[j]
		}
		lp.scale[j] = 1
		for k := range m.Prices {
			lp.scale[j] = max(lp.scale[j], float64(m.RoomOf(k)[j]))
		}
	}
}

// joinItems makes rows of the items. Items are joined when they have the same set and shared marks and needs that round
// to the same on a logarithmic scale with the step; a step of 0 joins equals only.
func (lp *linearProgram) joinItems(held []bool, shared sharedMarks, step float64) {
	m := lp.m
	lp.rows = lp.rows[:0]
	lp.rowOf = make([]int32, len(m.Counts))
	index := make(map[string]int32)
	var key []byte
	for s := range m.Counts {
		lp.rowOf[s] = -1
		if !held[s] {
			continue
		}
		key = binary.AppendUvarint(key[:0], uint64(m.SetOf[s]))
		for _, g := range shared.byItem[s] {
			key = binary.AppendUvarint(key, uint64(g.group)+1)
			key = binary.AppendUvarint(key, math.Float64bits(g.share))
		}
		key = append(key, 0)
		key = lp.appendShape(key, m.NeedOf(s), step)
		at, ok := index[string(key)]
		if !ok {
			at = int32(len(lp.rows))
			index[string(key)] = at
			r := demandRow{need: make([]float64, m.Dims), feasible: m.SetOf[s], firstItem: s}
			for _, g := range shared.byItem[s] {
				r.groups, r.shares = append(r.groups, g.group), append(r.shares, g.share)
			}
			lp.rows = append(lp.rows, r)
		}
		lp.rowOf[s] = at
		lp.rows[at].add(m, s)
	}
	for i := range lp.rows {
		r := &lp.rows[i]
		for j := range r.need {
			r.need[j] /= r.pods * lp.scale[j]
		}
	}
}

// appendShape describes a need up to the step: in what proportion the dimensions are to each other, and, more coarsely,
// how large it all is. Large or small hardly matters to a program with fractions, so long as the proportions are the
// same.
func (lp *linearProgram) appendShape(key []byte, need []int64, step float64) []byte {
	first := 0.0
	for j, x := range need {
		switch {
		case step == 0 || x == 0 || lp.constant[j]:
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

func (r *demandRow) add(m *Problem, s int) {
	n := float64(m.Counts[s])
	r.pods += n
	for j := range r.need {
		r.need[j] += n * m.NeedsFloat[s*m.Dims+j]
	}
}

// sharedMarks are ids under which pods of several items get in each other's way.
type sharedMarks struct {
	ids    []int32
	byItem [][]markShare // by item
}

// markShare is how much of a node a pod uses up under a shared mark.
type markShare struct {
	group int32
	share float64
}

// sharedMarks finds the ids that force the most nodes. Under such an id a node is full when the shares of its pods sum
// to one: pods that shun each other have a share of one, pods with a cap of four have a quarter.
func (m *Problem) sharedMarks(most int) sharedMarks {
	out := sharedMarks{byItem: make([][]markShare, len(m.Counts))}
	if m.MarkCount == 0 || most == 0 {
		return out
	}
	forced := make([]float64, m.MarkCount)
	for s := range m.Counts {
		m.Shares(s, func(id int32, share float64) {
			forced[id] += share * float64(m.Counts[s])
		})
	}
	for id := range forced {
		if forced[id] > 1 {
			out.ids = append(out.ids, int32(id))
		}
	}
	slices.SortFunc(out.ids, func(a, b int32) int {
		return cmp.Or(cmp.Compare(forced[b], forced[a]), cmp.Compare(a, b))
	})
	out.ids = out.ids[:min(len(out.ids), most)]
	group := make([]int32, m.MarkCount)
	for i, id := range out.ids {
		group[id] = int32(i) + 1
	}
	for s := range m.Counts {
		m.Shares(s, func(id int32, share float64) {
			if group[id] > 0 {
				out.byItem[s] = append(out.byItem[s], markShare{group: group[id] - 1, share: share})
			}
		})
	}
	return out
}
