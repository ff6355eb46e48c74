// Package change has the kinds of changes of the world, by what they may mean to a plan.
//
// Floor 3: values only.
package change

// Kind says what a change may mean to a placement.
type Kind uint8

const (
	// Demand: pods that need a place have come, gone or changed.
	Demand Kind = 1 << iota
	// Supply: something else that a placement depends on has changed.
	Supply
	// GivesRoom: the change may give room to a pod that found none.
	GivesRoom
	// Disruption: no placement depends on it, but which nodes may go does.
	Disruption

	None Kind = 0
	Room      = Supply | GivesRoom
)
