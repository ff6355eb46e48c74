package disrupt

import "testing"

// What becomes of moves of several nodes, and of moves that share what is made for them.
func TestWhatBecomesOfMovesThatShare(t *testing.T) {
	tells(t, "moves", []tellsOf{
		{"one of two nodes finds room, and a new one for the other would be no cheaper",
			"huge:2 small:2 small:; n1+n2 move Underutilized",
			"unfence/n2: NothingCheaper, rests; give up n2: NothingCheaper; n2 may still go because it has to; look again in 9m0s"},
		{"one of three nodes finds room, and a new one for one of the others would be no cheaper",
			"huge:1 medium:4 huge:2 small:1; n1+n2+n3 move Underutilized",
			"unfence/n2: NothingCheaper, rests; give up n2: NothingCheaper; n2 may still go because it has to; look again in 9m0s"},
		{"a drifted node has fallen sick, too", "huge:; n1 drifted; n1 move Drifted; n1 sick 30m",
			"delete/n1; n1 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); it has no pods that move"},
	})
}
