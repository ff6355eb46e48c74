// Package nominate tells pods on which new node they are expected, and lets new nodes open one after the other.
//
// Floor 2: pure.
package nominate
