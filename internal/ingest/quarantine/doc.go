// Package quarantine remembers what the planner has failed on, and for how long it is left out of plans.
//
// Floor 3: it has no lock and no clock.
package quarantine
