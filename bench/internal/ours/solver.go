// Package ours runs Tenon's engine on a workload: from API objects, through ingest, to a placement.
//
// What is timed is more than what the peer is timed for: every node and pod, the running ones included, is told to an
// empty book and converted; then a snapshot is taken and placed. Only pools and the conversion of the catalog are ready
// before the clock starts, as the peer's are.
package ours

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/bench/internal/contest"
	"github.com/tenon-sh/tenon/bench/internal/outcome"
	"github.com/tenon-sh/tenon/bench/internal/workload"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
	"github.com/tenon-sh/tenon/internal/validate"
)

// Solver is Tenon.
type Solver struct{}

// patience bounds the wait for the book to take in the catalog, which happens beside us.
const patience = time.Minute

// Prepare implements contest.Solver.
func (Solver) Prepare(w *workload.Workload, policy contest.Policy) (contest.Run, error) {
	kind := cluster.ClassRef{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind}
	book := ingest.New(time.Now, validate.Labels{}, []cluster.ClassRef{kind})
	kind.Name = workload.NodeClass
	book.SetNodeClass(kind, cluster.NodeClassState{Ready: true, Generation: 1})
	for _, p := range w.Pools {
		book.SetPool(p)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- book.KeepCatalogs(ctx, fixedCatalog(w.Types)) }()
	for waits(book) {
		select {
		case <-book.Changed():
		case <-ctx.Done():
			return nil, fmt.Errorf("the book has not taken in the catalog within %s", patience)
		}
	}
	cancel()
	if err := <-done; err != nil {
		return nil, fmt.Errorf("take in the catalog: %w", err)
	}
	for _, p := range book.Snapshot().Pools {
		if !p.IsUsable() {
			return nil, fmt.Errorf("the pool %s can't be used: %v", p.Name, p.Problems)
		}
	}
	return &run{book: book, workload: w, settings: schedule.Settings{IgnorePreferences: policy.IgnorePreferences}}, nil
}

// waits reports whether some pool's catalog is not there yet.
func waits(book *ingest.Book) bool {
	for _, p := range book.Snapshot().Pools {
		if p.AwaitsCatalog() {
			return true
		}
	}
	return false
}

// fixedCatalog is a catalog that sells the same to all.
type fixedCatalog []*cloudprovider.InstanceType

// InstanceTypes implements cloudprovider.Catalog.
func (c fixedCatalog) InstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return c, nil
}

// run is one workload before the engine.
type run struct {
	book      *ingest.Book
	workload  *workload.Workload
	settings  schedule.Settings
	placement schedule.Placement
	core      time.Duration
}

// Solve implements contest.Run. The engine is bounded by steps, not by time: it is not interrupted.
func (r *run) Solve(context.Context) error {
	for _, n := range r.workload.Nodes {
		r.book.SetNode(n)
	}
	for _, p := range r.workload.Running {
		r.book.SetPod(p)
	}
	for _, p := range r.workload.Pods {
		r.book.SetPod(p)
	}
	overlay := r.book.Snapshot().SchedulerView()
	begin := time.Now()
	r.placement = schedule.Place(overlay, r.settings)
	r.core = time.Since(begin)
	return nil
}

// Bound implements contest.Run.
func (r *run) Bound() float64 { return r.placement.Bound }

// Core implements contest.Run.
func (r *run) Core() time.Duration { return r.core }

// Outcome implements contest.Run.
func (r *run) Outcome() outcome.Outcome {
	out := outcome.Outcome{Hosts: make(map[string][]string)}
	zones, terms := r.workload.Domains()
	for i := range r.placement.Bins {
		b := &r.placement.Bins[i]
		n := outcome.Node{
			Pool: b.Pool.Name, Types: b.Types,
			Zones: allowed(b.Requirements, cluster.ZoneLabel, zones), Terms: allowed(b.Requirements,
				cluster.CapacityTypeLabel, terms),
		}
		for _, p := range b.Pods {
			n.Pods = append(n.Pods, p.UID)
		}
		out.New = append(out.New, n)
	}
	for _, a := range r.placement.Assigned {
		out.Hosts[a.Host] = append(out.Hosts[a.Host], a.Pod.UID)
	}
	for _, u := range r.placement.Unplaced {
		out.Unplaced = append(out.Unplaced, u.Pod.UID)
	}
	return out
}

// allowed are those of the values that the requirements leave for the key.
func allowed(set require.Set, key string, values []string) []string {
	var out []string
	for _, value := range values {
		ruledOut := slices.ContainsFunc(set, func(e require.Entry) bool {
			return e.Key == key && !e.Values.Matches(value, true)
		})
		if !ruledOut {
			out = append(out, value)
		}
	}
	return out
}
