// Package operator runs the controller on any cloud: whoever has a cloudprovider.Provider says in a Cloud what it
// brings, and main is one line:
//
//	func main() { operator.Main(mycloud.New()) }
//
// It is public and speaks only in the API, in package cloudprovider and in Kubernetes' own libraries; nothing of
// Tenon's inside leaks through it. Behind that it wires: this is the one place where a clock, a client, a logger and a
// cloud meet the rest. It decides nothing. docs/tasks/provider.md walks through a provider of one's own.
package operator
