package pack

import "github.com/tenon-sh/tenon/internal/pack/lp"

// Worth is what a pod of each item has to pay at least, whatever nodes are bought: the items' worths together are a
// price that no choice of nodes can undercut. A node whose pods are worth much less than it costs is a wasteful one.
func Worth(p *Problem) []float64 { return lp.Relax(&newModel(p, true).Problem, false).Worth }
