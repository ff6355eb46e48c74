package pack_test

import (
	"math/rand"
	"testing"

	"github.com/tenon-sh/tenon/internal/pack"
)

// The bound is the optimum of the linear program that its documentation describes, nearly.
func TestBoundIsNearlyTheLinearOptimum(t *testing.T) {
	worst := 1.0
	for seed := range int64(1500) {
		r := rand.New(rand.NewSource(seed))
		p := generate(r, recipe{stacks: 1 + r.Intn(6), offers: 1 + r.Intn(6), most: 12, sites: r.Intn(2) == 0})
		want, got := linearOptimum(p), pack.Bound(p)
		if got > want*(1+1e-6)+1e-9 {
			t.Fatalf("seed %d: the bound is %g, the linear program gives %g", seed, got, want)
		}
		if want > 0 {
			worst = min(worst, got/want)
		}
	}
	t.Logf("at worst %.3f%% below", 100*(1-worst))
	if worst < 0.995 {
		t.Errorf("%.2f%% below the linear optimum", 100*(1-worst))
	}
}

// linearOptimum solves the dual: fees of items as high as possible, such that on no bin type a pod's needs, at rates
// for which a node costs its price, come to less than its fee. Room beyond what all its pods could fill does not count.
func linearOptimum(p *pack.Problem) float64 {
	const dims = 16
	n := len(p.Items)
	columns := n + dims*len(p.BinTypes)
	var rows [][]float64
	goal := make([]float64, columns)
	for o := range p.BinTypes {
		budget := make([]float64, columns+1)
		budget[columns] = p.BinTypes[o].Price
		var fill [dims]int64
		for g := range p.Items {
			st := &p.Items[g]
			if !p.FeasibleSets[st.Unrestricted].Has(o) || !st.Need.Fits(p.BinTypes[o].Room) {
				continue
			}
			goal[g] = float64(st.Count)
			row := make([]float64, columns+1)
			row[g] = 1
			for d, x := range st.Need {
				row[n+o*dims+d] = -float64(x) / unit(d)
				fill[d] += x * int64(st.Count)
			}
			rows = append(rows, row)
		}
		for d := range dims {
			budget[n+o*dims+d] = float64(max(0, min(fill[d], p.BinTypes[o].Room[d]))) / unit(d)
		}
		rows = append(rows, budget)
	}
	return simplex(rows, goal)
}

func unit(dim int) float64 {
	if dim == 1 {
		return 1 << 30
	}
	return 1
}

// simplex maximises goal·x under rows·x ≤ last column, x ≥ 0, by the plainest rule that can't run in circles.
func simplex(rows [][]float64, goal []float64) float64 {
	m, n := len(rows), len(goal)
	table := make([][]float64, m+1)
	basis := make([]int, m)
	for i := range m {
		table[i] = make([]float64, n+m+1)
		copy(table[i], rows[i][:n])
		table[i][n+i], table[i][n+m] = 1, rows[i][n]
		basis[i] = n + i
	}
	table[m] = make([]float64, n+m+1)
	for j, g := range goal {
		table[m][j] = -g
	}
	for {
		enter, leave := -1, -1
		for j := range n + m {
			if table[m][j] < -1e-9 {
				enter = j
				break
			}
		}
		if enter < 0 {
			return table[m][n+m]
		}
		for i := range m {
			if a := table[i][enter]; a > 1e-9 {
				if leave < 0 {
					leave = i
					continue
				}
				x, y := table[i][n+m]/a, table[leave][n+m]/table[leave][enter]
				if x < y-1e-12 || x <= y+1e-12 && basis[i] < basis[leave] {
					leave = i
				}
			}
		}
		if leave < 0 {
			return 0 // only an item that no bin type bounds, and there is none
		}
		pivot(table, leave, enter)
		basis[leave] = enter
	}
}

func pivot(table [][]float64, row, column int) {
	f := 1 / table[row][column]
	for j := range table[row] {
		table[row][j] *= f
	}
	for i := range table {
		if a := table[i][column]; i != row && a != 0 {
			for j := range table[i] {
				table[i][j] -= a * table[row][j]
			}
		}
	}
}
