// Package lease says how long this replica may act: it keeps the term for which the replica was elected and sends
// nothing that changes something once another replica may have taken over.
//
// It stands on floor 3: it speaks to the API server about the lease, and knows none of the values inside.
package lease
