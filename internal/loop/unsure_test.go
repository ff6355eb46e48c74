package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// failing is an API server that answers no creation, and knows whether the claim is there.
type failing struct {
	there            bool
	creations, looks int
}

func (f *failing) Do(_ context.Context, c command.Command) command.Outcome {
	out := command.Outcome{Command: c, At: time.Now()}
	if create, ok := c.(command.CreateClaim); ok && create.ConfirmOnly {
		f.looks++
		if f.looks == 1 { // it does not answer at once, either
			out.Err, out.Unsure = errors.New("no answer"), true
			return out
		}
		if out.InstanceGone = !f.there; f.there {
			out.Writes = []command.Write{{Kind: command.KindClaim, Name: create.Name, Version: "7", Created: true}}
		}
		return out
	}
	f.creations++
	out.Err, out.Unsure = errors.New("etcdserver: request is too large"), true
	return out
}

// A claim whose creation fails for ever is asked for as long as its pods need it, and not any longer.
func TestClaimsThatNobodyNeedsAreNotAskedFor(t *testing.T) {
	for _, there := range []bool{false, true} {
		book := wasteful(t, 0)
		pod := &cluster.Pod{UID: "p", Name: "p"}
		f := &failing{there: there}
		l := &Loop{World: book, Actor: f, Observer: silent{done: make(chan command.Outcome, 100)}}
		c := command.CreateClaim{Name: "x", Pool: "default", PoolUID: "default", Pods: []*cluster.Pod{pod}}
		see := func(pods ...*cluster.Pod) {
			s, _ := l.snapshot()
			l.newestSnapshot.Store((&cluster.Snapshot{Now: s.Now, Names: s.Names, Pools: s.Pools, Pods: pods}).Seal())
		}
		waits := 0
		l.Wait = func(context.Context, time.Duration) error {
			if waits++; waits == 5 {
				see()
			}
			if !book.Snapshot().InFlight["create/x"] {
				t.Error("it is not counted as under way between two tries")
			}
			return nil
		}
		see(pod)
		book.Begin(c)
		l.Execute(t.Context(), book.Snapshot(), c)
		if f.creations != 5 || f.looks != 2 {
			t.Errorf("%d creations were asked for, and %d looks, expected 5 and 2", f.creations, f.looks)
		}
		// One that is there counts as under way until the watch shows it.
		if busy := book.Snapshot().InFlight["create/x"]; busy != there {
			t.Errorf("there %t: under way %t", there, busy)
		}
	}
}

func TestWhoNeedsAClaim(t *testing.T) {
	pool := &cluster.Pool{Name: "default", UID: "pool"}
	waits := cluster.Pod{UID: "p"}
	with := func(change func(*cluster.Pod)) *cluster.Pod {
		p := waits
		change(&p)
		return &p
	}
	for _, c := range []struct {
		what     string
		pool     cluster.Pool
		pod      *cluster.Pod
		replaces string
		pods     int
		want     bool
	}{
		{"a pod that waits", *pool, &waits, "", 1, true},
		{"one that has a node", *pool, with(func(p *cluster.Pod) { p.Node = "n" }), "", 1, false},
		{"one that has a node which goes", *pool, with(func(p *cluster.Pod) { p.Node = "n" }), "Drifted/x", 1, true},
		{"one that is done", *pool, with(func(p *cluster.Pod) { p.Finished = true }), "Drifted/x", 1, false},
		{"one that is deleted", *pool, with(func(p *cluster.Pod) { p.Deleting = time.Now() }), "", 1, false},
		{"none", *pool, with(func(p *cluster.Pod) { p.UID = "other" }), "", 1, false},
		{"a static pool", *pool, &waits, "", 0, true},
		{"a pool that is being deleted", cluster.Pool{Name: "default", UID: "pool", Deleting: true}, &waits,
			"", 1, false},
		{"a namesake of the pool", cluster.Pool{Name: "default", UID: "new"}, &waits, "", 1, false},
		{"no pool", cluster.Pool{Name: "other", UID: "pool"}, &waits, "", 1, false},
	} {
		s := (&cluster.Snapshot{Pools: []*cluster.Pool{&c.pool}, Pods: []*cluster.Pod{c.pod}}).Seal()
		create := command.CreateClaim{Pool: "default", PoolUID: "pool", Pods: []*cluster.Pod{&waits}[:c.pods],
			Replaces: c.replaces}
		if got := isClaimNeeded(s, &create); got != c.want {
			t.Errorf("%s: needed %v", c.what, got)
		}
	}
}
