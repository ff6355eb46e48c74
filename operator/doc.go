// Package operator runs the controller on any cloud: whoever has a cloudprovider.Provider says in a Cloud what it
// brings, and main is one line:
//
//	func main() { operator.Main(mycloud.New()) }
//
// It is public and speaks only in the API, in package cloudprovider and in Kubernetes' own libraries; nothing of
// Tenon's inside leaks through it. Behind that it wires: this is the one place where a clock, a client, a logger and a
// cloud meet the rest. It decides nothing. docs/tasks/provider.md walks through a provider of one's own.
//
// What others write against is in five files: main.go (the program), controller.go (its command), cloud.go (what a
// cloud brings), host.go (what it gets) and gates.go. All others wire one thing each, and are small because a stranger
// looks for them by their name: options.go, disruption.go and repair.go read flags, choose.go picks the cloud,
// manager.go, loop.go, webhook.go and older.go build what runs, clock.go, health.go, serving.go, snapshots.go,
// wakeup.go and contained.go are what it runs with.
package operator
