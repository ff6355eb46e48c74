package execute_test

import "testing"

// What becomes of moves of several nodes, and of moves that share what is made for them.
func TestWhatBecomesOfMovesThatShare(t *testing.T) {
	tells(t, "moves", []tellsOf{
		{"one of two nodes finds room, and a new one for the other would be no cheaper",
			"huge:2 small:2 small:; n1+n2 move Underutilized",
			"unfence/n2: NothingCheaper, rests; give up n2: NothingCheaper; n2 may still go because it has to; look " +
				"again in 9m0s"},
		{"one of three nodes finds room, and a new one for one of the others would be no cheaper",
			"huge:1 medium:4 huge:2 small:1; n1+n2+n3 move Underutilized",
			"unfence/n2: NothingCheaper, rests; give up n2: NothingCheaper; n2 may still go because it has to; look " +
				"again in 9m0s"},
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
			"unfence/n1: NotBalanced, rests; give up n1: NotBalanced; n1 may still go because it has to; look again " +
				"in 9m0s"},
		{"what was made for the younger of two moves is up",
			"large:4 large:4 medium:; n1+n2 drifted; n1 move Drifted; n1 began 2m; n2 move Drifted; n3 replaces n2; " +
				"all alike x",
			"delete/n2; want $2; n2 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); " +
				"its pods go to n3; new medium|large|huge for p2; kept for web4: 1; look again in 8m0s"},
		{"what is up was made for an earlier try of the younger of two moves",
			"large:4 large:4 medium:; n1+n2 drifted; n1 move Drifted; n1 began 2m; n2 move Drifted; n3 replaces n2; " +
				"n3 aged 1h; all alike x",
			"delete/n1; want $2; n1 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); " +
				"its pods go to n3; new medium|large|huge for p2; kept for web4: 1; look again in 9m0s"},
		{"one node of a move stays, and the fence of the other did not go up",
			"huge: huge:; n1+n2 move Underutilized; n1 protected; n2 open x; n2 failed fence",
			"unfence/n1: NodeDoNotDisrupt; fence/n2; give up n1: NodeDoNotDisrupt; look again in 9m0s"},
		{"nothing can be bought, and nobody knows what was paid for one of two nodes",
			"huge:2 medium:2 small:; n1+n2 move Underutilized; n3 replaces n1; n3 unsold x; all sold out",
			"unfence/n1: PodsStranded, rests; unfence/n2: PodsStranded, rests; give up n1+n2: PodsStranded; " +
				"n1 may still go because it has to; n2 may still go because it has to; look again in 9m0s"},
		{"the node of a static pool waits for another, and has not taken the room yet that there is",
			"large:4 large:4 medium:; n2 of b; n3 of b; all static 1; n1+n2 drifted; n1 move Drifted; n1 began 2m; " +
				"n2 move Drifted; all alike x",
			"delete/n2; want $1; n2 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); " +
				"its pods fit on nodes that are there; new small|medium|large|huge for ; kept for web4: 1; look " +
				"again in 8m0s"},
		{"the node that takes the place of one of a static pool is for its pods",
			"large:4 large:4 medium:; n2 of b; all static 1; n1+n2 drifted; n1 move Drifted; n1 began 2m; n2 move " +
				"Drifted; n3 replaces n1; all alike x",
			"delete/n1; want $2; n1 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); " +
				"its pods go to n3; new medium|large|huge for p2; kept for web4: 1; look again in 9m0s"},
		{"a move of nodes that are to live on", "medium:; n1 old 3h; n1 move Expired",
			"unfence/n1: NoLongerDue; give up n1: NoLongerDue; look again in 2h15m18s"},
		{"pods of a daemon, and those that stay to the end, are not said to move",
			"large:1,1,1; p1 daemon; p2 tolerates; n1 sick 30m; all dry",
			"would n1; " +
				"tell Node n1: Dry run: would disrupt the node (Unhealthy: it is unhealthy); 1 pods would move; " +
				"tell NodeClaim n1: Dry run: would disrupt the node (Unhealthy: it is unhealthy); 1 pods would move"},
		{"a node that another reason takes the budget of",
			"large:1 large:1 large: large:; n1 drifted; n1 move Drifted; n2 move Underutilized; n4 unready; all " +
				"budget 2",
			"delete/n1; n1 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); " +
				"its pods fit on nodes that are there; look again in 9m0s"},
		{"a node that is kept while its fence goes up is out",
			"huge: huge:; n1 move Underutilized; n1 open x; n1 fences x; n1 protected; n2 drifted; all budget 1",
			"give up n1: NodeDoNotDisrupt; eager"},
		{"a node that was never up is not in again",
			"huge: huge: huge:; n1 joining; n1 move Unhealthy; n2 drifted; n3 unready; all budget 1",
			"unfence/n1: NoLongerDue; give up n1: NoLongerDue; eager"},
		{"pods of one move go to what an earlier try of another has left, which is a node like any other",
			"small:1 large:8 medium:2; n1 move Underutilized; n2 move Underutilized; n3 replaces n2; n3 aged 1h",
			"delete/n1; unfence/n2: NothingCheaper, rests; give up n2: NothingCheaper; " +
				"n1 goes: its pods go to n3, which saves $1.000 an hour; n2 may still go because it has to; look " +
				"again in 9m0s"},
		{"a drifted node has fallen sick, too", "huge:; n1 drifted; n1 move Drifted; n1 sick 30m",
			"delete/n1; n1 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); it has no pods " +
				"that move"},
	})
}
