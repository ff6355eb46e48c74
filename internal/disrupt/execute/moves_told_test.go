package execute_test

import "testing"

// What becomes of moves that are under way, and which begin.
func TestWhatBecomesOfMoves(t *testing.T) {
	tells(t, "moves", []tellsOf{
		{"a replacement costs more than the node that goes",
			"small:2 huge:3,1 large:4,3; n1 move Underutilized; n2 move Underutilized; n3 replaces n1",
			"unfence/n1: NothingCheaper, rests; give up n1: NothingCheaper; n1 may still go because it has to; " +
				"look again in 9m0s"},
		{"an empty node and another go together, in a pool that balances",
			"large: large:2,4,2 large:5; n1+n2 move Underutilized; all balanced 2",
			"want $2; want $1; new medium|large for p2; kept for web4: 1; new small|medium for p3; " +
				"kept for web2: 1; look again in 9m0s"},
		{"two nodes that are sick go at once",
			"huge: large:; n1 sick 30m; n1 move Unhealthy; n2 sick 10m; n2 move Unhealthy",
			"delete/n2; delete/n1; n2 goes: condition Ready of node n2 has been False for 10m0s or longer; " +
				"n1 goes: condition Ready of node n1 has been False for 10m0s or longer"},
		{"there is room for the pods of one of two nodes",
			"small:1 small:2 small: medium:3,1; n1 move Underutilized; n2 move Underutilized; n4 replaces n2",
			"delete/n2; unfence/n1: NothingCheaper, rests; give up n1: NothingCheaper; " +
				"n2 goes: its pods fit on nodes that are there, which saves $1.000 an hour; " +
				"n1 may still go because it has to; look again in 9m0s"},
		{"one node is open again", "medium: small:1; n1 move Empty; n2 move Underutilized; n1 open x",
			"delete/n2; unfence/n1: BeingDisrupted, rests; give up n1: BeingDisrupted; " +
				"n2 goes: its pods fit on nodes that are there, which saves $1.000 an hour; " +
				"n1 may still go because it has to"},
		{"a sick node and a drifted one whose machine has no node",
			"huge: medium:; n1 sick 10m; n1 move Unhealthy; n2 drifted; n2 move Drifted; n2 absent",
			"look again in 9m0s"},
		{"pods have come to empty nodes", "huge:5 small:1; n1 move Empty; n2 move Empty",
			"want $4; new large for p1+p2; kept for web5: 1; kept for web1: 1; look again in 9m0s"},
		{"an empty node of a pool that balances", "medium: huge:; n1 move Empty; all balanced 1",
			"unfence/n1: NotBalanced, rests; give up n1: NotBalanced; n1 may still go because it has to"},
		{"a replacement on its way would cost more than the node that goes",
			"small: medium:; n1 move Underutilized; n2 replaces n1; n2 joining",
			"unfence/n1: NothingCheaper, rests; give up n1: NothingCheaper; n1 may still go because it has to; " +
				"look again in 9m0s"},
		{"a pod is expected on an empty node",
			"small: small: medium:1; n1 move Empty; n1 expects; n2 drifted; all found x",
			"fence/n2; unfence/n1: PodsExpected, rests; begin n2 $1; give up n1: PodsExpected; " +
				"pass n3: PodsExpected; n1 may still go because it has to"},
		{"a node that does not expire", "medium:; n1 move Expired",
			"unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"nodes that have not drifted", "huge:1 medium:; n1+n2 move Drifted",
			"unfence/n1: NoLongerDue; unfence/n2: NoLongerDue; give up n1+n2: NoLongerDue"},
		{"nodes that have drifted", "huge:1 medium:; n1+n2 move Drifted; n1+n2 drifted",
			"want $1; new small|medium|large|huge for p1; kept for web1: 1; look again in 9m0s"},
		{"a node that is not interrupted", "huge: small:; n1+n2 move Interrupted",
			"unfence/n1: NoLongerDue; unfence/n2: NoLongerDue; give up n1+n2: NoLongerDue"},
		{"a sick node of a pool that only wants to be told", "medium: small: medium: large:1; all dry; n4 sick 10m",
			"would n4; tell Node n4: Dry run: would disrupt the node (Unhealthy: it is unhealthy); " +
				"1 pods would move; tell NodeClaim n4: Dry run: would disrupt the node (Unhealthy: it is unhealthy); " +
				"1 pods would move"},
		{"a node at its end goes before what was found", "huge:1 medium:1; n2 old 5m; all found x",
			"fence/n2; begin n2 $2; pass n1+n2: PodsExpected"},
		{"a node at its end is what was found", "medium: medium:1; n2 old 5m; all found x",
			"fence/n2; begin n2 $2; pass n2: BeingDisrupted"},
		{"a node of a move is being opened", "huge: huge:; n1+n2 move Underutilized; n1 opens x",
			"look again in 9m0s"},
		{"a node of a move is being deleted", "huge: large:; n1+n2 move Underutilized; n1 deletes x",
			"delete/n2; n2 goes: it has no pods that move, which saves $10.000 an hour"},
		{"a node of a move is being deleted, and a pod of the other needs a new node",
			"large:1 large:; n1+n2 move Underutilized; n2 deletes x",
			"want $1; new small|medium for p1; kept for web1: 1; look again in 9m0s"},
		{"a sick node of a move is being deleted",
			"large:5 medium:1; n1+n2 move Unhealthy; n1+n2 sick 10m; n1 deletes x",
			"want $4; new large|huge for p1+p2; kept for web5: 1; kept for web1: 1; look again in 9m0s"},
		{"a node of a move has been deleted", "medium: huge:; n1+n2 move Drifted; n2 deleted",
			"unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"the only node of a move has been deleted", "small:; n1 move Empty; n1 deleted",
			""},
		{"the machine of a node of the move is gone", "huge: large:; n1+n2 move Underutilized; n1 absent",
			"delete/n2; n2 goes: it has no pods that move, which saves $10.000 an hour"},
		{"a replacement is on its way for a move that needs none",
			"large: medium: huge:; n1 drifted; n1 move Drifted; n3 replaces n1; n3 joining",
			"look again in 9m0s"},
		{"a replacement that is too small is there",
			"medium: large:2 small:1; n1+n2 move Underutilized; n3 replaces n2",
			"want $1; new small|medium for p1; kept for web2: 1; look again in 9m0s"},
		{"a replacement on its way is interrupted",
			"huge: small:1 large:; n1+n2 move Empty; n3 replaces n2; n3 warned 0; n3 joining",
			"unfence/n2: NothingCheaper, rests; give up n2: NothingCheaper; n2 may still go because it has to; " +
				"look again in 9m0s"},
		{"a node at its end, and an empty one of a pool that balances",
			"large:2 small:1 huge:; n1 move Empty; all balanced 1; n3 old 5m",
			"fence/n3; unfence/n1: NotBalanced, rests; begin n3 $6; give up n1: NotBalanced; " +
				"n1 may still go because it has to; look again in 9m0s"},
		{"a move that is young", "small:; n1 move Underutilized; n1 began 10s",
			"delete/n1; n1 goes: it has no pods that move, which saves $1.000 an hour"},
		{"a replacement on its way that is too small",
			"large:1,4 large:4; n1 drifted; n1 move Drifted; n2 replaces n1; n2 joining",
			"want $1; new small|medium|large|huge for p1; kept for web1: 1; look again in 9m0s"},
		{"nothing can be bought, and the only other node is interrupted",
			"medium:1 huge:; n1 move Underutilized; all sold out; n2 warned 1h",
			"unfence/n1: PodsStranded, rests; give up n1: PodsStranded; n1 may still go because it has to; " +
				"look again in 9m0s"},
		{"a move that has waited for too long, and another",
			"huge:1 medium:1; n1 move Underutilized; n2 move Underutilized; n1 began 10m",
			"unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate; n1 may still go because it has to; " +
				"look again in 9m0s"},
		{"two moves share what has to be bought", "large:4 huge:1; n1 move Underutilized; n2 move Underutilized",
			"want $1; want $2; new small|medium|large for p2; kept for web1: 1; new medium for p1; " +
				"kept for web4: 1; look again in 9m0s"},
		{"the mark of a fence is missing on a claim", "small: large:; n1+n2 move Underutilized; n1 joining",
			"unfence/n1: BeingDisrupted, rests; unfence/n2: BeingDisrupted, rests; give up n1+n2: BeingDisrupted; " +
				"n1 may still go because it has to; n2 may still go because it has to"},
		{"a replacement has drifted itself",
			"small:1 medium:; n1 old 10m; n1 move Expired; n2 replaces n1; n2 drifted",
			"want $1; new small|medium|large|huge for p1; kept for web1: 1; look again in 9m0s"},
		{"a replacement is being deleted",
			"huge: large: large:; n1+n2 move Underutilized; n3 replaces n2; n3 deleted",
			"delete/n1; delete/n2; n1 goes: it has no pods that move, which saves $10.000 an hour; " +
				"n2 goes: it has no pods that move, which saves $10.000 an hour"},
		{"a node that has drifted says how", "huge:; n1 drifted; n1 move Drifted",
			"delete/n1; n1 goes: it is no longer what its NodePool and NodeClass ask for (AMIDrift); " +
				"it has no pods that move"},
		{"new nodes for the pods of two moves, one of which has one already",
			"huge:4,2,4 large:1 medium:2; n1 move Underutilized; n2 move Underutilized; n3 replaces n2",
			"want $2; want $2; want $1; new medium for p1; kept for web4: 1; new medium for p3; kept for web4: 1; " +
				"new small for p4; kept for web1: 1; look again in 9m0s"},
		{"a node of a move has a pod that must not be disturbed",
			"medium:1,1 small:1 medium:; n1+n2 move Underutilized; p3 protected; p1 together",
			"delete/n1; unfence/n2: PodDoNotDisrupt; give up n2: PodDoNotDisrupt; " +
				"n1 goes: its pods fit on nodes that are there, which saves $2.000 an hour"},
		{"a budget for one node, and a sick one",
			"medium: huge:; n1 move Underutilized; n2 sick 30m; n2 move Unhealthy; all budget 1",
			"delete/n2; n2 goes: condition Ready of node n2 has been False for 10m0s or longer; look again in 9m0s"},
		{"pods that belong together go where the others are", "small:1,1 medium:2 huge:3,2; p3 together; all found x",
			"fence/n1; fence/n2; begin n1 $1; begin n2 $2"},
		{"a node that is not ours takes pods of what was found", "large:2,5 large:1 large:1; n2 foreign; all found x",
			"fence/n3; fence/n1; begin n3 $4; begin n1 $3; want $1; new small|medium for p1; kept for web2: 1"},
		{"pods of a move that saves money don't go to a node of ours that has lost its claim", "medium:1 huge:; n2 " +
			"orphaned; n1 move Underutilized",
			"want $1; new small for p1; kept for web1: 1; look again in 9m0s"},
		{"they go to a node of others", "medium:1 huge:; n2 foreign; n1 move Underutilized",
			"delete/n1; n1 goes: its pods fit on nodes that are there, which saves $2.000 an hour"},
		{"a sick node is being fenced", "large:; n1 sick 30m; n1 move Unhealthy; n1 joining; n1 fences x",
			"look again in 10m0s"},
		{"the place of a replacement that nobody uses",
			"small: small: large: medium: large:1; n2 move Underutilized; n5 replaces n2; all balanced 1",
			"delete/n2; n2 goes: it has no pods that move, which saves $1.000 an hour"},
		{"a node of a move is needed after all", "huge: huge:; n1+n2 move Underutilized; n2 expects",
			"delete/n1; unfence/n2: PodsExpected, rests; give up n2: PodsExpected; " +
				"n1 goes: it has no pods that move, which saves $6.000 an hour; n2 may still go because it has to"},
		{"two moves, one of which has lost the mark of its fence",
			"huge: medium:; n1 move Expired; n2 old 5m; n2 move Expired; n1 joining",
			"delete/n2; unfence/n1: BeingDisrupted, rests; give up n1: BeingDisrupted; " +
				"n2 goes: it comes to the end of its expireAfter of 3h5m0s; it has no pods that move"},
		{"one of two nodes has no room for its pods",
			"huge:2 small:1 small:; n1+n2 move Underutilized; all guard 0; all sold out",
			"unfence/n2: PodsStranded, rests; give up n2: PodsStranded; n2 may still go because it has to; " +
				"look again in 9m0s"},
		{"a node that is being fenced and that people keep",
			"small: small:; n1+n2 move Empty; n1 fences x; n1 protected",
			"look again in 9m0s"},
		{"one of two moves is being fenced", "huge:1 large:3; n1 move Empty; n2 move Underutilized; n1 fences x",
			"look again in 9m0s"},
		{"a sick node that no budget allows", "large: huge: medium: huge:; all budget 0; n4 sick 30m",
			"tell Node n4: the disruption budgets of NodePool default allow no more nodes to be replaced now; " +
				"tell NodeClaim n4: the disruption budgets of NodePool default allow no more nodes to be replaced " +
				"now; " +
				"tell NodePool default: the disruption budgets of NodePool default allow no more nodes to be " +
				"replaced now"},
		{"a drifted node of a static pool gets a new one with seats for its pods",
			"large:1; n1 drifted; n1 move Drifted; all static 2",
			"want $1; new small|medium|large|huge for ; kept for web1: 1; look again in 9m0s"},
		{"pods that may not share a node go where the search has put them",
			"large:4,2,2 small:1,1 huge:5,3,4; p1 apart; all found x",
			"fence/n2; fence/n1; begin n2 $1; begin n1 $1"},
		{"a drifted node, and a move that is given up",
			"small:1 huge:; n1 drifted; n1 move Drifted; n2 move Underutilized; p1 apart; n2 open x",
			"unfence/n2: BeingDisrupted, rests; give up n2: BeingDisrupted; n2 may still go because it has to; " +
				"look again in 9m0s"},
		{"a node that is not sick any more, with a pod that has rules", "small:1; n1 move Unhealthy; p1 spread",
			"unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"a node that is not sick, and the planner fails elsewhere", "small:; n1 move Unhealthy; n2 failing x",
			"unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"a sick node does not wait for others that are not ready",
			"small: small: large:; n1 sick 30m; n1 move Unhealthy; all budget 1; n3 unready",
			"delete/n1; n1 goes: condition Ready of node n1 has been False for 10m0s or longer"},
	})
}

// What is done about nodes that the cloud takes away.
func TestWhatIsDoneAboutInterruptedNodes(t *testing.T) {
	tells(t, "interrupted", []tellsOf{
		{"a node without pods", "huge:; n1 warned 2m; n1 move Interrupted",
			"delete/n1; n1 goes: its instance is interrupted (spot, gone by 2026-11-15T12:02:00Z); " +
				"it has no pods that move; in 2m0s; look again in 1m15s"},
		{"a node of a static pool", "huge:; all static 2; n1 warned 2m",
			"fence/n1; begin n1 $6; look again in 1m15s"},
		{"a node of a static pool that can't be read", "huge:; all static 2; all unreadable x; n1 move Interrupted; " +
			"n1 warned 2m",
			"look again in 1m15s"},
		{"a node that is being deleted", "large:1; n1 warned 30s; n1 deleted; all placed x",
			""},
		{"there is hardly time", "huge: huge: medium:; n3 warned 30s",
			"delete/n3; n3 goes: its instance is interrupted (spot, gone by 2026-11-15T12:00:30Z); " +
				"its pods leave whether or not they have a place elsewhere; in 30s"},
		{"another node is interrupted", "huge:1 medium:1; n1 warned 0; n2 move Interrupted",
			"fence/n1; begin n1 $6; want $1; new small|medium|large|huge for p1; kept for web1: 1"},
		{"only the pod of a daemon runs there", "huge:1 small:1; n2 warned 2m; n2 move Interrupted; p2 daemon",
			"delete/n2; n2 goes: its instance is interrupted (spot, gone by 2026-11-15T12:02:00Z); " +
				"it has no pods that move; in 2m0s; look again in 1m15s"},
		{"a replacement of a static pool that is to go itself",
			"huge: small: large:; n1 move Unhealthy; n3 replaces n1; n3 warned 0; n3 move Interrupted; all static 4",
			"want $1; new small|medium|large|huge for "},
		{"a machine that is not up, on which the planner fails",
			"huge: small:; n2 move Interrupted; n2 joining; n2 warned 0; n2 failing x",
			""},
		{"a node goes, and the plan places its pod", "large:1 huge:; n1 node-deleted; all placed x; n2 warned 2m",
			"fence/n2; begin n2 $6; look again in 1m15s"},
		{"a node of a static pool whose replacement is there",
			"small:1 huge: small:; n1 move Interrupted; n3 replaces n1; n1 warned 1h; all static 4",
			"delete/n1; n1 goes: its instance is interrupted (spot, gone by 2026-11-15T13:00:00Z); " +
				"its pods fit on nodes that are there; in 1h0m0s; look again in 59m15s"},
		{"another node is being deleted at once",
			"large:4,2,1 large:3 small:2 large:4; n3 forced 1m; n3 deletes x; n4 warned 0; all static 4",
			"fence/n4; begin n4 $4"},
	})
}

// What is done about them while nobody knows yet how many pods there are to be.
func TestWhatIsDoneAboutInterruptedNodesWhilePodsAreCounted(t *testing.T) {
	tells(t, "interrupted, while pods are counted", []tellsOf{
		{"another pod waits, and another node is sick",
			"medium:1 medium:; n1 warned 1h; n2 move Unhealthy; n1 waits 1",
			"fence/n1; begin n1 $2; want $1; new small|medium|large|huge for p1; kept for web1: 1; " +
				"look again in 59m15s"},
		{"there is hardly time", "small: huge: medium:; n3 warned 30s",
			"delete/n3; n3 goes: its instance is interrupted (spot, gone by 2026-11-15T12:00:30Z); " +
				"its pods leave whether or not they have a place elsewhere; in 30s"},
		{"a pod must not be disturbed", "huge:1,1; n1 warned 1h; p2 protected",
			"fence/n1; begin n1 $6; want $1; new small|medium|large|huge for p1; kept for web1: 1; " +
				"look again in 49m15s"},
		{"a node of a static pool", "huge:; all static 2; n1 warned 2m",
			"fence/n1; begin n1 $6; look again in 1m15s"},
		{"it is only advised", "medium:; n1 warned 0",
			""},
		{"it is fenced, and nothing can be bought", "large:1; n1 warned 0; n1 move Interrupted; all sold out",
			""},
		{"only the pod of a daemon runs there", "huge:1 small:1; n1 move Unhealthy; n2 warned 2m; p2 daemon",
			"fence/n2; begin n2 $1; look again in 1m15s"},
		{"another node has drifted", "small:1 small:; n1 warned 0; n1 move Interrupted; n2 drifted",
			"want $1; new small|medium|large|huge for p1; kept for web1: 1"},
		{"there is time", "huge: medium: small: small:; n4 warned 1h",
			"fence/n4; begin n4 $1; look again in 59m15s"},
		{"a node of a pool beside a static one", "huge:1; n1 of b; n1 warned 2m; all static 4",
			"fence/n1; begin n1 $6; want $1; new small|medium|large|huge for p1; kept for web1: 1; " +
				"look again in 1m15s"},
	})
}

// Which nodes begin to be replaced that have to be.
func TestWhichReplacementsBegin(t *testing.T) {
	tells(t, "start", []tellsOf{
		{"a sick node that goes already", "huge: large:; n1 move Expired; n2 sick 10m; n2 move Unhealthy; n1 absent",
			""},
		{"a sick node, and a move that is under way",
			"medium:1 small:1 huge:1 large:; n1 drifted; n1 move Drifted; n4 replaces n1; n4 joining; n3 sick 30m",
			"fence/n3; begin n3 $6"},
		{"a sick node, and a pod that waits", "huge: small: small: small:; n3 waits 5; n4 sick 30m",
			"fence/n4; begin n4 $1"},
		{"a node at its end", "small: medium: huge:; n3 old 5m",
			"fence/n3; begin n3 $6"},
		{"a node that is sick long enough", "large: large:; n2 sick 10m",
			"fence/n2; begin n2 $4"},
		{"nodes that are not sick for long enough",
			"huge: huge: large:; n1 sick 5m; n1 move Unhealthy; n2 move Underutilized; n3 drifted; n3 sick 5m",
			"eager; look again in 5m0s"},
		{"a node at its end that has drifted", "small: huge:; n2 old 10m; n2 drifted",
			"fence/n2; begin n2 $6"},
		{"a sick node at its end", "small: huge:; n2 sick 30m; n2 old 10m",
			"fence/n2; begin n2 $6"},
		{"a drifted node, and no budget", "huge: medium: huge:; n1+n2 move Empty; n3 drifted; all budget 0",
			""},
		{"a drifted node while another is being replaced",
			"small: medium: small: large: medium:; n2 move Drifted; n5 replaces n2; n5 joining; n4 drifted",
			"fence/n4; begin n4 $4; look again in 4m10s"},
	})
}

// What is done about nodes that carry nothing.
func TestWhatIsDoneAboutEmptyNodes(t *testing.T) {
	tells(t, "empty", []tellsOf{
		{"a replacement that is on its way",
			"medium: medium: large:1; n1 move Empty; n3 replaces n1; n3 joining; n1 foreign",
			"fence/n2"},
		{"a static pool", "medium: small:; all static 5; n2 absent",
			""},
		{"a replacement on its way for a node that is sick",
			"large: medium:; n1 move Unhealthy; n2 replaces n1; n2 joining; n1 foreign",
			"look again in 9m10s"},
		{"a pool that only wants to be told", "large:; all dry",
			"would n1; tell Node n1: Dry run: would disrupt the node (Empty: it carries no workload); " +
				"$2920.00 a month would be saved; " +
				"tell NodeClaim n1: Dry run: would disrupt the node (Empty: it carries no workload); " +
				"$2920.00 a month would be saved"},
	})
}
