// Package lp solves the linear program behind a packing problem, in which nodes and pods can be divided: it says what
// no choice of nodes can undercut, and what each resource is worth on each kind of node.
package lp
