// Package whatif plays what happens to pods if nodes go: which find room on the nodes that stay, and what new nodes for
// the others would cost.
//
// Floor 2: a pure function of an overlay. Each what-if costs what it touches, not what the cluster has.
package whatif
