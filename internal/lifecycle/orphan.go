package lifecycle

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Orphans ends instances that the cloud runs and no claim accounts for. What has a node of ours is left to that node's end,
// which drains it.
func Orphans(s *cluster.Snapshot) Step {
	var step Step
	if s.Census == nil || len(s.Census.Instances) == 0 {
		return step
	}
	claims := make(map[string]*cluster.Claim, len(s.Claims))
	for _, c := range s.Claims {
		claims[c.UID] = c
	}
	nodes := make(map[string]*cluster.Node, len(s.Nodes))
	for _, n := range s.Nodes {
		nodes[n.ProviderID] = n
	}
	for i := range s.Census.Instances {
		x := &s.Census.Instances[i]
		if x.Terminating || s.Gone[x.ProviderID] || s.Census.At.Before(x.Created.Add(lagFor)) {
			continue
		}
		if c := claims[x.ClaimUID]; !second(c, x) && (c != nil || accounted(s, x)) {
			continue
		}
		if n := nodes[x.ProviderID]; n != nil && (s.ClaimOf(n.Name) != nil || n.Ours && n.Finalized) {
			continue
		}
		step.do(command.Terminate{ProviderID: x.ProviderID})
	}
	return step
}

// second reports whether the claim has another instance than this one.
func second(c *cluster.Claim, x *cluster.Instance) bool {
	return c != nil && c.Is(cluster.Launched) && c.ProviderID != "" && c.ProviderID != x.ProviderID
}

// accounted reports whether the instance is somebody's: its claim is there, or the launch of one of that name is under way.
func accounted(s *cluster.Snapshot, i *cluster.Instance) bool {
	if s.Busy[command.LaunchInstance{Claim: i.Claim}.Key()] {
		return true
	}
	c := s.Claim(i.Claim)
	return c != nil && (c.Expected || c.UID == i.ClaimUID || i.ClaimUID == "")
}

// instance finds what the cloud listed under the provider id.
func instance(s *cluster.Snapshot, providerID string) (*cluster.Instance, bool) {
	if s.Census == nil {
		return nil, false
	}
	at, found := slices.BinarySearchFunc(s.Census.Instances, providerID, func(i cluster.Instance, id string) int {
		return strings.Compare(i.ProviderID, id)
	})
	if !found {
		return nil, false
	}
	return &s.Census.Instances[at], true
}
