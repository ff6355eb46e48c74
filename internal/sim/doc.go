// Package sim runs the whole program in virtual time, with faults drawn from a seed.
//
// Real are the parts that think and act: the Book of package ingest, plan.Make and plan.Check through the pass of
// package loop, and every command of package actuate. Around them stands a small world written for this purpose: an API
// server with watches that lag, a cloud whose capacity comes and goes, kubelets, kube-scheduler, and the controllers of
// Kubernetes that matter here. One seed gives one history, to the last byte: a single queue of events, one source of
// randomness, nothing that walks a map. Commands run as coroutines that stand still between two calls to the world, so
// that a crash can cut them at any point and everything else can happen in between.
//
// The judge (judge.go) looks at every write and calls out the first broken promise; once the faults have ended,
// final.go asks whether the cluster has come to rest in good order.
//
//	go test ./internal/sim                              a few thousand seeds
//	go test ./internal/sim -run TestSeed -seed 17 -v    one seed again, with its history
//	go test ./internal/sim -run TestSoak -soak          seeds without end
//
// It stands beside the building: nothing imports it but its own tests.
package sim
