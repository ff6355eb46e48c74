// Package e2e tests the program as a user runs it: the real executable as a process of its own, on the lab's real
// control plane with simulated kubelets. It stands beside the building and holds only tests.
package e2e
