package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// placement is Tenon's answer. Pods are named namespace/name.
type placement struct {
	Error    string            `json:"error"`
	Assigned map[string]string `json:"assigned"` // pod to node
	Later    map[string]string `json:"later"`    // pod to a node that takes it once new nodes have pods
	Bins     []bin             `json:"bins"`
	Unplaced map[string]string `json:"unplaced"` // pod to why
}

// bin is a new node and what it may become, cheapest first.
type bin struct {
	Pool      string            `json:"pool"`
	Pods      []string          `json:"pods"`
	Offerings []offering        `json:"offerings"`
	Labels    map[string]string `json:"labels"`
	Price     float64           `json:"price"`
}

type offering struct {
	Type   string            `json:"type"`
	Labels map[string]string `json:"labels"`
	Price  float64           `json:"price"`
	// Reservation that it is taken from, if any, and how many are left there.
	Reservation string `json:"reservation"`
	Left        int    `json:"left"`
}

// text writes the placement for people.
func (p *placement) text() string {
	if p == nil {
		return "there is no placement"
	}
	out := new(strings.Builder)
	for _, pod := range slices.Sorted(maps.Keys(p.Assigned)) {
		fmt.Fprintf(out, "%s goes to %s\n", pod, p.Assigned[pod])
	}
	for _, pod := range slices.Sorted(maps.Keys(p.Later)) {
		fmt.Fprintf(out, "%s goes to %s once the new nodes have pods\n", pod, p.Later[pod])
	}
	for i, b := range p.Bins {
		fmt.Fprintf(out, "new-%d of %s is for %s:", i+1, b.Pool, strings.Join(b.Pods, ", "))
		for _, o := range b.Offerings {
			fmt.Fprintf(out, " %s/%s/%s", o.Type, o.Labels[corev1.LabelTopologyZone], o.Labels[capacityTypeLabel])
		}
		out.WriteByte('\n')
	}
	for _, pod := range slices.Sorted(maps.Keys(p.Unplaced)) {
		fmt.Fprintf(out, "%s has no place: %s\n", pod, p.Unplaced[pod])
	}
	return out.String()
}
