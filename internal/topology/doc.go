// Package topology counts pods by the rules between them, and says where those rules let one more pod go.
//
// Floor 2: it answers as kube-scheduler's filters do, knows nodes and pods, and nothing of what is for sale.
package topology
