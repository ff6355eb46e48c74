// Package saving says what a move is worth: what its new nodes may cost at most, and which of its nodes only ride
// along.
//
// Floor 2: pure.
package saving
