// Package pools reads NodePools: their templates and the hash of these, their limits, what annotations say about
// disruption, and when their budgets hold.
//
// Floor 3: functions over objects; an Entry remembers nothing but what it has found out about its budgets' times.
package pools
