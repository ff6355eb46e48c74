package plan_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
)

// As long as a pool that could be used does not know what the cloud sells, pods wait: planning without it could only come to a worse answer.
func TestPodsWaitForWhatIsSold(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *cluster.Pool)
		waits  bool
	}{
		{"it knows", func(*cluster.Pool) {}, false},
		{"it does not know yet", func(p *cluster.Pool) { p.Catalog = nil }, true},
		{"it could not find out", func(p *cluster.Pool) { p.Catalog, p.CatalogError = nil, "denied" }, false},
		{"it could not be used anyway", func(p *cluster.Pool) { p.Catalog, p.NodeClass.Ready = nil, false }, false},
		{"it goes", func(p *cluster.Pool) { p.Catalog, p.Deleting = nil, true }, false},
	} {
		x := newScene()
		other := *x.pool
		other.Name, other.UID = "other", "other"
		c.change(&other)
		x.s.Pools = append(x.s.Pools, &other)
		if p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil); p.Provisioned == c.waits {
			t.Errorf("%s: planned for %t, want %t", c.name, p.Provisioned, !c.waits)
		}
	}
}

// What a search has found is looked at unless pods are being counted, which might want the nodes: then it is asked for again.
func TestWhatASearchHasFoundIsLookedAt(t *testing.T) {
	found := &disrupt.Proposal{}
	for _, c := range []struct {
		name     string
		found    *disrupt.Proposal
		counting bool
		looked   bool
	}{{"nothing was searched", nil, false, false}, {"a search was made", found, false, true}, {"pods are being counted", found, true, false}} {
		x := newScene()
		if c.counting {
			x.w.Seen = x.s.Now
			x.s.Owners["web"] = cluster.Owner{UID: "web", Known: true, Desired: 9}
		}
		x.s.Planned = x.s.Now.Add(-time.Hour)
		if p := plan.Make(x.s.Seal(), defaultPolicy(), nil, c.found); p.Looked != c.looked {
			t.Errorf("%s: looked at %t, want %t", c.name, p.Looked, c.looked)
		}
	}
}
