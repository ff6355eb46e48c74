package plan_test

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// unusedNodes: unused web tries=2 taint=agent=yes:NoExecute|cause=label next=30s [standing=default#1,default#2]
// [coming=1] [well] [gone] [visited=2] [settling=1] [most=4] says that nodes made for the owner of the pods web are
// unused. The newest that stands is retained. unused web none takes it back.
func (n *storyRunner) unusedNodes(name string, words []string) {
	b := &cluster.WorkloadTries{Owner: "rs-" + name, Kind: "ReplicaSet", Name: "default/" + name, Since: n.w.now}
	f := cluster.UnusedNode{At: n.w.now, Pool: "default", Claim: "default-gone"}
	if n.w.tries == nil {
		n.w.tries = make(map[string]*cluster.WorkloadTries)
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "none":
			delete(n.w.tries, b.Owner)
			return
		case "tries":
			b.FailedTries = n.integer(value)
		case "next":
			b.NextTry = n.w.now.Add(n.duration(value))
		case "soon":
			b.ProvenAt = n.w.now.Add(n.duration(value))
		case "coming":
			b.ComingClaims = n.integer(value)
		case "visited":
			b.UnusedWithPods = n.integer(value)
		case "settling":
			b.Unproven = n.integer(value)
		case "most":
			b.MostUnproven = n.integer(value)
		case "gone":
			b.WorkloadGone = true
		case "well":
			b.RunsAgain = true
		case "standing":
			for _, alias := range strings.Split(value, ",") {
				b.UnusedClaims = append(b.UnusedClaims, n.w.realName(alias))
			}
			b.Retained = b.UnusedClaims[len(b.UnusedClaims)-1]
			f.Claim, f.Node = b.Retained, alias(value)
		case "taint":
			f.Cause = cluster.Cause{Kind: cluster.CauseTaint, Taint: n.taint(value), By: "node-agent"}
		case "cordon":
			f.Cause = cluster.Cause{Kind: cluster.CauseCordon}
		case "cause":
			f.Cause = causes()[value]
			if f.Cause.Kind == "" {
				n.fail("unused: unknown cause %q", value)
			}
		default:
			n.fail("unused: unknown word %q", word)
		}
	}
	for _, p := range n.w.pods {
		if p.Owner == b.Owner && !slices.Contains(f.Classes, p.Class) {
			f.Classes = append(f.Classes, p.Class)
		}
	}
	b.Failures = []cluster.UnusedNode{f}
	n.w.tries[b.Owner] = b
}

// causes are examples of what keeps pods away, by the word that stands for them.
func causes() map[string]cluster.Cause {
	return map[string]cluster.Cause{
		"label": {Kind: cluster.CauseLabel, Label: "tier", Was: "gold", Is: "tin", By: "kubectl-label",
			Labels: cluster.Labels{}.With("tier", "tin")},
		"unlabel": {Kind: cluster.CauseLabel, Label: "tier", Was: "gold"},
		"shrunk":  {Kind: cluster.CauseShrunk, Resource: "cpu", Need: "2", Promised: "4", Left: "1", By: "cpu-taker"},
		"port":    {Kind: cluster.CausePort, Resource: "8080/TCP", TakenBy: "kube-system/proxy"},
		"evicted": {Kind: cluster.CauseEvicted, Message: "PreemptionByScheduler: preempted by a critical pod",
			By: "kube-scheduler"},
		"scheduler": {Kind: cluster.CauseScheduler, Message: "0/6 nodes are available: 6 node(s) had no free ring."},
	}
}

// alias is the last of several names.
func alias(list string) string { return list[strings.LastIndex(list, ",")+1:] }

// unusedNow are the tries as a snapshot has them.
func (w *world) unusedNow() map[string]*cluster.WorkloadTries {
	out := make(map[string]*cluster.WorkloadTries, len(w.tries))
	for owner, b := range w.tries {
		c := *b
		if !c.ProvenAt.IsZero() && !w.now.Before(c.ProvenAt.Add(time.Nanosecond)) {
			c.RunsAgain = true
		}
		out[owner] = &c
	}
	return out
}
