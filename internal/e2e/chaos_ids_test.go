package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// idCounts are the three lists that must agree: how often each provider ID is in the cluster, on our side and in the
// cloud.
type idCounts struct{ nodes, claims, instances map[string]int }

func (c *chaos) countIDs() (idCounts, error) {
	b := idCounts{nodes: map[string]int{}, claims: map[string]int{}, instances: map[string]int{}}
	var nodes corev1.NodeList
	var claims v1.NodeClaimList
	var instances corev1.ConfigMapList
	if err := c.c.List(c.ctx, &nodes); err != nil {
		return b, fmt.Errorf("listing nodes: %w", err)
	}
	if err := c.c.List(c.ctx, &claims); err != nil {
		return b, fmt.Errorf("listing claims: %w", err)
	}
	if err := c.c.List(c.ctx, &instances, client.HasLabels{instanceLabel}); err != nil {
		return b, fmt.Errorf("listing instances: %w", err)
	}
	for i := range nodes.Items {
		b.nodes[nodes.Items[i].Spec.ProviderID]++
	}
	for i := range claims.Items {
		b.claims[claims.Items[i].Status.ProviderID]++
	}
	for i := range instances.Items {
		b.instances["kwok://"+instances.Items[i].Name]++
	}
	return b, nil
}

// trouble says where the lists differ.
func (b idCounts) trouble() string {
	var out []string
	for _, pair := range []struct {
		name        string
		left, right map[string]int
	}{{"claims and instances", b.claims, b.instances}, {"claims and nodes", b.claims, b.nodes}} {
		all := maps.Clone(pair.left)
		maps.Copy(all, pair.right)
		for _, id := range slices.Sorted(maps.Keys(all)) {
			if pair.left[id] != 1 || pair.right[id] != 1 {
				out = append(out, fmt.Sprintf("%s: %q is there %d and %d times", pair.name, id, pair.left[id],
					pair.right[id]))
			}
		}
	}
	if len(out) > 5 {
		out = append(out[:5], fmt.Sprintf("and %d more", len(out)-5))
	}
	return strings.Join(out, "; ")
}
