package require

import (
	"slices"
	"strings"
)

// maxTypos is how many letters a mistyped name may differ in; of a short name, one in four.
const maxTypos = 2

// Nearest is the name that was probably meant: the one of the names that differs from the word in the fewest letters;
// empty if all are too far away or the word is one of them. Capitals count like small letters.
func Nearest(word string, names []string) string {
	if !slices.IsSorted(names) {
		names = slices.Sorted(slices.Values(names))
	}
	best, slips, small := "", min(maxTypos, len(word)/4)+1, strings.ToLower(word)
	for _, name := range names {
		if name == word {
			return ""
		}
		if d := distance(small, strings.ToLower(name), slips); d < slips {
			best, slips = name, d
		}
	}
	return best
}

// distance is how many letters must be put in, taken out or changed, or how many neighbours swapped, to make b of a;
// most, if they are at least as many.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	// rows[i%3][j] is the distance between the first i letters of a and the first j of b.
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for i := range len(a) + 1 {
		row, before, twoBefore := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		for j := range len(b) + 1 {
			switch {
			case i == 0:
				row[j] = j
			case j == 0:
				row[j] = i
			case a[i-1] == b[j-1]:
				row[j] = before[j-1]
			default:
				row[j] = 1 + min(before[j-1], before[j], row[j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					row[j] = min(row[j], 1+twoBefore[j-2])
				}
			}
		}
	}
	return min(rows[len(a)%3][len(b)], most)
}
