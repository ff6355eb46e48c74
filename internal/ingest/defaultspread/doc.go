// Package defaultspread finds out with which pods a pod is to be spread that has no topology spread constraints of its
// own, from Services and from what controls it, as kube-scheduler does.
//
// Floor 3: it has no lock and no clock; it names the pods that are to be read again.
package defaultspread
