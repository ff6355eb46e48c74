// Package ingest is the door: it watches Kubernetes and the cloud, turns what it sees into the values of package
// cluster, and hands out snapshots. Nothing below it knows a Kubernetes object.
//
// It is also the only memory of the program. What commands have done comes back here (Begin, Record) and is part of the
// next snapshot before the watch has shown it. All of it is rebuilt from the API server after a restart.
//
// What is known is kept by the packages below: each has structs without a lock and a clock, which return what has
// changed. The Book has the lock, hands each object to the owners that it concerns, and what they return to the others.
//
// Floor 3: it reads through informers and asks the cloud what may be bought; it never writes.
package ingest
