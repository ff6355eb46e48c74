package pack

import "github.com/tenon-sh/tenon/internal/pack/lp"

// Bound is a price that no choice of nodes for all the items can undercut.
//
// It is the optimum, nearly, of a linear program in which nodes and pods can be divided: each pod, or its parts, is on
// bin types of its item's unrestricted set that could hold it whole; for each bin type and resource the needs of what
// is on it are at most the room of the nodes bought; and so for marks under which pods of one kind keep apart, where a
// node has room for one, or for as many as their cap says. Room that all pods together could not fill does not count.
// Limits, reservations, preferences, Suits and marks between different pods are left out. An item that no bin type can
// hold counts nothing.
//
// The proof that the bound holds is a price for each resource on each bin type at which a node's room costs no more
// than the node: a pod pays at least what it needs at the prices of the bin type where that is least. Any such prices
// give a valid bound, so it does not depend on how precisely the program is solved.
func Bound(p *Problem) float64 { return lp.Relax(&newModel(p, true).Problem, true).Bound }
