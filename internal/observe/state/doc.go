// Package state shows what a snapshot holds as series of metrics, when somebody asks for them.
//
// Floor 3: it reads snapshots and changes nothing.
package state
