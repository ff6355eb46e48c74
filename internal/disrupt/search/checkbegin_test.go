package search

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/market"
)

// When it is sure that something of what was found begins, or when there is too much to ask. Each case is a cluster of
// which two moves take n1 away.
func TestWhatNeedsNoRehearsal(t *testing.T) {
	limited := &cluster.Pool{Name: "limited", Limits: cluster.Limits{HasNodes: true, Nodes: 3}}
	for _, c := range []struct {
		name, cluster string
		evicted       int // by both moves
		pool          *cluster.Pool
		want          bool
	}{
		{"pods without rules", "large:1 large:5", 2, nil, true},
		{"pods with rules", "large:1 large:5; pods spread", 2, nil, false},
		{"only another node has pods with rules", "large:1 large:5; p2 spread", 2, nil, true},
		{"only a pod of a DaemonSet has rules", "large:1,1 large:5; p2 spread; p2 daemon", 2, nil, true},
		{"a new node of a pool with limits", "large:1 large:5", 2, limited, false},
		{"a new node of a pool that is on trial", "large:1 large:5", 2, &cluster.Pool{Name: "tried", Probing: true},
			false},
		{"a new node of another pool", "large:1 large:5", 2, &cluster.Pool{Name: "other"}, true},
		{"as many pods as are rehearsed", "large:1 large:5; pods spread", maxCheckedPods, nil, false},
		{"one more", "large:1 large:5; pods spread", maxCheckedPods + 1, nil, true},
		{"a fence is going up", "large:1 large:5; pods spread; n2 busy", 2, nil, true},
		{"another move is under way", "large:1 large:5; pods spread; n2 fenced Drifted", 2, nil, true},
	} {
		s := disrupttest.FleetOf(c.cluster).S.Seal()
		moves := []disrupt.Move{{Claims: []string{"n1"}, Evicted: 1}, {Claims: []string{"n1"}, Evicted: c.evicted - 1}}
		if c.pool != nil {
			for i := range moves {
				moves[i].Bins = []market.Bin{{Pool: c.pool}}
			}
		}
		if got := surelyBegins(s, moves); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
