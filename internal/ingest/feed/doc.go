// Package feed registers handlers with informers: each kind once, in an order, and so that a handler that fails ends
// nothing.
//
// Floor 3: it reads through informers; it never writes.
package feed
