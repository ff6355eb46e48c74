// Package evictions counts how often pods of a workload were evicted to save money within the hour. It is the one count
// that a restart loses, so whoever takes over supposes the worst.
//
// Floor 3: it has no lock and no clock.
package evictions
