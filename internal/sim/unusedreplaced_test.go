package sim

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// Nodes that drift before pods have come go at once, in moves that make nothing. What was made since for the pods that
// wait stands in their place, one for each.
func TestHowManyNodesAreReplaced(t *testing.T) {
	const drift, saving = "drifted-aaaaaaaaaa", "underutilized-aaaaaaaaaa"
	type made struct {
		at              time.Duration // after the drift
		drifted         bool
		move, replacing string
	}
	before, after := made{at: -time.Minute}, made{at: time.Second}
	goes := made{at: -time.Minute, drifted: true, move: drift}
	for name, c := range map[string]struct {
		nodes []made
		want  int
	}{
		"nothing goes":                     {[]made{before, after}, 0},
		"nothing was made since":           {[]made{goes, before}, 0},
		"one for one":                      {[]made{goes, after}, 1},
		"two go for one":                   {[]made{goes, goes, after}, 1},
		"two are made for one":             {[]made{goes, after, after}, 1},
		"it goes to save money":            {[]made{{at: -time.Minute, move: saving}, after}, 0},
		"it has drifted and saves money":   {[]made{{at: -time.Minute, drifted: true, move: saving}, after}, 0},
		"what was made has drifted, too":   {[]made{goes, {at: time.Second, drifted: true}}, 0},
		"what was made names another move": {[]made{goes, {at: time.Second, replacing: "drifted-bbbbbbbbbb"}}, 1},
		"what was made is of another move": {[]made{goes, {at: -time.Minute, move: saving},
			{at: time.Second, replacing: saving}}, 1},
		"both have their own": {[]made{goes, after, {at: -time.Minute, move: saving},
			{at: time.Second, replacing: saving}}, 2},
		"the move has made something itself": {[]made{goes, after, {at: time.Second, replacing: drift}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(1, Options{})
			v, now, found := s.judge.unused, s.clock.now.Truncate(time.Second), make(map[types.UID]*idle)
			for i, n := range c.nodes {
				claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("claim-", i),
					Annotations: map[string]string{}}}
				if n.move != "" {
					claim.Annotations[cluster.MoveAnnotation] = n.move
				}
				if n.replacing != "" {
					claim.Annotations[cluster.ReplacesAnnotation] = n.replacing
				}
				add := func(kind string) {
					claim.Status.Conditions = append(claim.Status.Conditions, metav1.Condition{Type: kind,
						Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)})
				}
				if add(v1.ConditionTypeInitialized); n.drifted {
					add(v1.ConditionTypeDrifted)
				}
				s.store.create(claim)
				claim, _ = find[*v1.NodeClaim](s.store, claims, claim.Name)
				m := &machine{node: claim.Name, joined: true}
				m.instance.ClaimUID, m.instance.Type = string(claim.UID), s.cloud.types[0].Name
				s.cloud.machines = append(s.cloud.machines, m)
				v.madeAt[claim.UID] = now.Add(n.at)
				v.note(found, "app", m)
			}
			if got := v.replaced(found["app"]); got != c.want {
				t.Errorf("%d are replaced, want %d", got, c.want)
			}
		})
	}
}
