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
		{"of two nodes one has what was made for it, and another new one would save too little for the other",
			"huge:2 medium:2 small:; n1+n2 move Underutilized; n3 replaces n1; all saving 0.6",
			"unfence/n2: SavesTooLittle, rests; give up n2: SavesTooLittle; n2 may still go because it has to; " +
				"look again in 9m0s"},
		{"nobody knows what was paid for one of two nodes, and another is to be bought",
			"huge:2 medium:2 small:; n1+n2 move Underutilized; n3 replaces n1; n3 unsold x",
			"unfence/n1: PriceUnknown, rests; unfence/n2: PriceUnknown, rests; give up n1+n2: PriceUnknown; " +
				"n1 may still go because it has to; n2 may still go because it has to; look again in 9m0s"},
		{"nobody knows what a node will cost that is on its way",
			"medium: medium:; n1 move Underutilized; n2 replaces n1; n2 joining; n2 unsold x",
			"look again in 9m0s"},
		{"no node of a move pays, and it is enough that one stays",
			"medium/spot:1,1,1 small/b/spot:1 small:; n1+n2 move Underutilized; all alike x",
			"unfence/n1: NothingCheaper, rests; give up n1: NothingCheaper; n1 may still go because it has to; " +
				"look again in 9m0s"},
		{"some nodes of a move have gone, and a pool that balances would not let the rest begin",
			"large:4 large:; n1+n2 move Underutilized; n2 deletes x; all balanced 0.1",
			"want $2; new medium for p1; kept for web4: 1; look again in 9m0s"},
		{"the same before any has gone",
			"large:4 large:; n1+n2 move Underutilized; all balanced 1",
			"unfence/n1: NotBalanced, rests; give up n1: NotBalanced; n1 may still go because it has to; look again in 9m0s"},
		{"what was made for the younger of two moves is up",
			"large:4 large:4 medium:; n1+n2 drifted; n1 move Drifted; n1 began 2m; n2 move Drifted; n3 replaces n2; all alike x",
			"delete/n2; want $2; n2 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); " +
				"its pods go to n3; new medium|large|huge for p2; kept for web4: 1; look again in 8m0s"},
		{"what is up was made for an earlier try of the younger of two moves",
			"large:4 large:4 medium:; n1+n2 drifted; n1 move Drifted; n1 began 2m; n2 move Drifted; n3 replaces n2; n3 aged 1h; all alike x",
			"delete/n1; want $2; n1 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); " +
				"its pods go to n3; new medium|large|huge for p2; kept for web4: 1; look again in 9m0s"},
		{"a drifted node has fallen sick, too", "huge:; n1 drifted; n1 move Drifted; n1 sick 30m",
			"delete/n1; n1 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); it has no pods that move"},
	})
}
