// Package market is what can be bought now: the offerings of each pool, with the room that DaemonSets leave on them and
// what limits and reservations leave of them.
//
// Floor 2: it knows what classes of pods ask of a node, and nothing of which pods wait.
package market
