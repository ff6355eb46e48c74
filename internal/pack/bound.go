package pack

// Bound is a price that no choice of nodes for all the stacks can undercut.
//
// It is the optimum, nearly, of a linear program in which nodes and pods can be divided: each pod, or its parts, is on
// offers of its stack's loose site that could hold it whole; for each offer and resource the needs of what is on it are at
// most the room of the nodes bought; and so for marks under which pods of one kind keep apart, where a node has room for
// one, or for as many as their cap says. Room that all pods together could not fill does not count. Shelves, stocks,
// wishes, Suits and marks between different kinds of pods are left out. A stack that no offer can hold counts nothing.
//
// The proof that the bound holds is a price for each resource on each offer at which a node's room costs no more than the
// node: a pod pays at least what it needs at the prices of the offer where that is least. Any such prices give a valid
// bound, so it does not depend on how precisely the program is solved.
func Bound(p *Problem) float64 { return relax(newModel(p, true), true).bound }
