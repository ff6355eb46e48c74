package price

import (
	"maps"
	"math"
	"slices"
)

// fit finds what a vCPU, a MiB of memory, a GB of disk and a MiB of an accelerator's memory cost: the weights with the
// least sum of squares of relative errors over the known prices. A part that would have a negative weight gets none,
// and the others are found again.
func (e *estimator) fit(accelerated bool) []float64 {
	var rows [][]float64
	for _, name := range slices.Sorted(maps.Keys(e.shapes)) {
		s, p := e.shapes[name], e.here[name]
		if p == 0 || (s.AcceleratorMiB > 0) != accelerated {
			continue
		}
		row := s.parts()
		for i := range row {
			row[i] /= p
		}
		rows = append(rows, row)
	}
	use := []int{0, 1, 2}
	if accelerated {
		use = append(use, 3)
	}
	for {
		weights := leastSquares(rows, use)
		kept := slices.DeleteFunc(slices.Clone(use), func(part int) bool { return weights[part] <= 0 })
		if len(kept) == len(use) || len(kept) == 0 {
			return weights
		}
		use = kept
	}
}

// leastSquares finds the weights of the parts in use with which the rows come nearest to one, by the normal equations.
// The parts that are not in use weigh nothing; likewise those that the rows say nothing of.
func leastSquares(rows [][]float64, use []int) []float64 {
	n := len(use)
	matrix := make([][]float64, n) // the last column is the right side
	for i := range matrix {
		matrix[i] = make([]float64, n+1)
		for _, row := range rows {
			for j := range n {
				matrix[i][j] += row[use[i]] * row[use[j]]
			}
			matrix[i][n] += row[use[i]]
		}
	}
	eliminate(matrix)
	weights := make([]float64, len(Shape{}.parts()))
	for i, part := range use {
		if matrix[i][i] != 0 {
			weights[part] = matrix[i][n] / matrix[i][i]
		}
	}
	return weights
}

// eliminate brings the matrix to diagonal form, by Gauss and Jordan. It is symmetric and positive, so no rows need to
// change places; one that is all zeros stays so.
func eliminate(matrix [][]float64) {
	for i := range matrix {
		if math.Abs(matrix[i][i]) < 1e-12 {
			matrix[i] = make([]float64, len(matrix)+1)
			continue
		}
		for j := range matrix {
			if j == i {
				continue
			}
			factor := matrix[j][i] / matrix[i][i]
			for k := range matrix[j] {
				matrix[j][k] -= factor * matrix[i][k]
			}
		}
	}
}
