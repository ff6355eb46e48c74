package hostile_test

import (
	"fmt"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/hostile"
)

// TestWordyPodsOfAWorkloadThatFailed: a workload whose nodes can't be used, with pods of many words, costs no more than
// without the failure.
func TestWordyPodsOfAWorkloadThatFailed(t *testing.T) {
	book := newBook(t, ordinary)
	for i, p := range hostile.Excluding(40, 5000) {
		q := hostile.Owned("workload")
		p.OwnerReferences = q.OwnerReferences
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = fmt.Sprint(i)
		book.SetPod(p)
	}
	s := book.Snapshot()
	before, _ := planned(book)
	owner := cluster.OwnerKey(hostile.Namespace, "workload")
	b := &cluster.WorkloadTries{Owner: owner, FailedTries: 3, Since: s.Now, NextTry: s.Now.Add(cluster.TryAfter(3)),
		UnusedClaims: []string{"x", "y"}}
	for _, kind := range []cluster.CauseKind{cluster.CauseEvicted, cluster.CauseDeleted, cluster.CauseCordon,
		cluster.CauseScheduler} {
		f := cluster.UnusedNode{Claim: "x", Cause: cluster.Cause{Kind: kind}}
		for _, p := range s.Pods {
			if p.Owner == owner && len(f.Classes) < 20 {
				f.Classes = append(f.Classes, p.Class)
			}
		}
		b.Failures = append(b.Failures, f)
	}
	s.WorkloadTries = map[string]*cluster.WorkloadTries{owner: b}
	after, p := plannedOn(s)
	placed := placedPods(&p.Placement)
	for i := range ordinary {
		if !placed[string(ordinaryPod(i).UID)] {
			t.Fatalf("ordinary pod %d has no place", i)
		}
	}
	held := 0
	for i := range p.Placement.Unplaced {
		if p.Placement.Unplaced[i].Pod.Owner == owner {
			held++
		}
	}
	if held < 20 {
		t.Errorf("%d pods of the workload are held, expected 20 at least", held)
	}
	if after > before+5_000_000 {
		t.Errorf("a plan takes %d KiB, and %d KiB without the failures", after>>10, before>>10)
	}
}
