// Package disrupt says which nodes may go, for what reason, and within what budgets: candidates and what keeps them,
// disruption budgets, the health of nodes, how often pods are evicted, and the values in which the packages below it
// hand each other moves. drift, repair, empty and static find nodes that go by themselves, search looks for a cheaper
// cluster and saving says what that is worth; destination finds places for the pods of moves, and execute takes each
// move from its fences to its end.
//
// Floor 2: pure.
package disrupt
