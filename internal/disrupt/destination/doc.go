// Package destination finds places for the pods of moves as if the nodes of the moves were gone: on nodes that are
// there or on their way, or on new ones.
//
// Floor 2: pure.
package destination
