package pack

// Solve finds a cheap set of nodes for the stacks.
func Solve(p *Problem) Solution {
	left := make([]int, len(p.Stacks))
	for i := range p.Stacks {
		left[i] = p.Stacks[i].Count
	}
	return Solution{Left: left}
}
