package oracle

import (
	"math/rand/v2"

	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

// dice draw the same cluster again from the same seed.
type dice struct{ *rand.Rand }

func newDice(seed int) dice { return dice{rand.New(rand.NewPCG(uint64(seed), 0x7e0))} }

// chance is true in so many of a hundred cases.
func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

// between draws a number from low to high, both included.
func (d dice) between(low, high int) int { return low + d.IntN(high-low+1) }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

// some draws at least one and at most most of the list, in its order.
func some[T any](d dice, most int, list ...T) []T {
	n := d.between(1, min(most, len(list)))
	chosen := d.Perm(len(list))[:n]
	out := make([]T, 0, n)
	for i, value := range list {
		for _, c := range chosen {
			if c == i {
				out = append(out, value)
			}
		}
	}
	return out
}

func amount(text string) apiresource.Quantity { return apiresource.MustParse(text) }
