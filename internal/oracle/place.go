package main

import (
	"context"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/market"

	corev1 "k8s.io/api/core/v1"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// placement is where the pods of a cluster go. Pods are named namespace/name.
type placement struct {
	Error    string            `json:"error,omitempty"`
	Assigned map[string]string `json:"assigned"` // pod to node
	Later    map[string]string `json:"later"`    // pod to a node that takes it once new nodes have pods
	Bins     []bin             `json:"bins"`
	Unplaced map[string]string `json:"unplaced"` // pod to why
}

// bin is a new node.
type bin struct {
	Pool string   `json:"pool"`
	Pods []string `json:"pods"`
	// Offerings are all that the node may become, cheapest first, as the cloud reads its claim.
	Offerings []offering        `json:"offerings"`
	Labels    map[string]string `json:"labels"`
	Price     float64           `json:"price"`
}

// offering is one thing that a node may become.
type offering struct {
	Type   string            `json:"type"`
	Labels map[string]string `json:"labels"`
	Price  float64           `json:"price"`
	// Reservation that it is taken from, if any, and how many are left there.
	Reservation string `json:"reservation,omitempty"`
	Left        int    `json:"left,omitempty"`
}

// place answers one cluster.
func place(ctx context.Context, w *world) placement {
	s, err := w.snapshot(ctx)
	if err != nil {
		return placement{Error: err.Error()}
	}
	found := schedule.Place(s.SchedulerView(), schedule.Settings{})
	out := placement{Assigned: make(map[string]string), Later: make(map[string]string),
		Unplaced: make(map[string]string)}
	for _, a := range found.Assigned {
		if a.Later {
			out.Later[a.Pod.ID()] = a.Host
			continue
		}
		out.Assigned[a.Pod.ID()] = a.Host
	}
	for i := range found.Unplaced {
		out.Unplaced[found.Unplaced[i].Pod.ID()] = render.Unplaced(&found.Unplaced[i])
	}
	for i := range found.Bins {
		out.Bins = append(out.Bins, w.bin(s, &found.Bins[i]))
	}
	return out
}

// bin asks what the cloud could launch for the bin's claim: the same question that providers ask.
func (w *world) bin(s *cluster.Snapshot, b *market.Bin) bin {
	out := bin{Pool: b.Pool.Name, Labels: b.Labels.Map(), Price: b.Price}
	for _, p := range b.Pods {
		out.Pods = append(out.Pods, p.ID())
	}
	for _, c := range choose.Ranked(w.Types, claimOf(s.Names, b)) {
		if c.Offering.Available {
			out.Offerings = append(out.Offerings, offering{Type: c.Type.Name, Labels: c.Labels(),
				Price:       c.Offering.Price,
				Reservation: c.Offering.ReservationID, Left: c.Offering.ReservationCapacity})
		}
	}
	return out
}

// claimOf writes what providers read of a bin's claim.
func claimOf(names *resource.Names, b *market.Bin) *v1.NodeClaim {
	claim := &v1.NodeClaim{}
	claim.Labels = b.Labels.Map()
	claim.Spec.Requirements = requirements(b.Requirements)
	claim.Spec.Resources.Requests = quantities(names, b.Requests)
	return claim
}

func requirements(set require.Set) []v1.NodeSelectorRequirementWithMinValues {
	var out []v1.NodeSelectorRequirementWithMinValues
	for _, e := range set {
		for _, term := range e.Values.Terms() {
			out = append(out, v1.NodeSelectorRequirementWithMinValues{
				Key: e.Key, Operator: corev1.NodeSelectorOperator(term.Op), Values: slices.Clone(term.Values)})
		}
	}
	return out
}

func quantities(names *resource.Names, v resource.Vector) corev1.ResourceList {
	out := corev1.ResourceList{}
	for dim, amount := range v {
		switch {
		case amount == 0 || strings.HasPrefix(names.Name(dim), resource.AttachPrefix):
			// Nothing, or not a resource of nodes: volumes are counted by their drivers.
		case dim == resource.CPU:
			out[corev1.ResourceCPU] = *apiresource.NewMilliQuantity(amount, apiresource.DecimalSI)
		default:
			out[corev1.ResourceName(names.Name(dim))] = *apiresource.NewQuantity(amount, apiresource.BinarySI)
		}
	}
	return out
}
