// Package contest gives the same workloads to solvers, one after the other in one process, and compares what they take
// and what they come to.
//
// It reads the clock and the memory statistics of the process; what the solvers do is theirs.
package contest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/tenon-sh/tenon/bench/internal/outcome"
	"github.com/tenon-sh/tenon/bench/internal/workload"
)

// Policy is how a solver is set up.
type Policy struct {
	// IgnorePreferences leaves out what pods would merely like.
	IgnorePreferences bool
}

// Solver is a contestant.
type Solver interface {
	// Prepare gets everything ready that a running autoscaler has at hand when pods arrive. It is not timed. What it
	// returns is used once: every run begins cold.
	Prepare(w *workload.Workload, policy Policy) (Run, error)
}

// Run is a workload given to a solver.
type Run interface {
	// Solve finds places for the pods. It is timed. Once the context ends it returns soon, with what it has.
	Solve(ctx context.Context) error
	// Outcome says what Solve came to. It is not timed.
	Outcome() outcome.Outcome
	// Bound is a proven lower bound on the cost, 0 if the solver gives none; Core is how long the solver's own core
	// took, without the conversion of its input, 0 if the two can't be told apart.
	Bound() float64
	Core() time.Duration
}

// Result is what one solver took for a workload and came to.
type Result struct {
	Seconds     float64 `json:"seconds"`
	CoreSeconds float64 `json:"core_seconds,omitempty"`
	// CPUSeconds is the processor time of all threads: what the wall clock would show is more if others use the
	// machine, and less if several cores are at work.
	CPUSeconds float64 `json:"cpu_seconds"`
	// AllocMB is everything that was allocated on the way, in millions of bytes, whether or not it was freed again.
	AllocMB float64 `json:"alloc_mb"`
	// Cut says that the solver was not done when its time was up.
	Cut      bool    `json:"cut"`
	Nodes    int     `json:"nodes"`
	Cost     float64 `json:"cost"`
	Unplaced int     `json:"unplaced"`
	// PlacedMilli is how many thousandths of cores the placed pods ask for.
	PlacedMilli int64    `json:"placed_milli"`
	Bound       float64  `json:"bound,omitempty"`
	Problems    []string `json:"problems,omitempty"`
	// All are the seconds of each run.
	All []float64 `json:"all_seconds"`
}

// Settings say how to measure.
type Settings struct {
	// Cut is how long a run may take.
	Cut time.Duration
	// Count is how often a small workload is run; the median counts. Workloads with more than SmallPods are run once.
	Count, SmallPods int
	Policy           Policy
}

// Measure runs the workload and keeps the run with the median time.
func Measure(ctx context.Context, s Solver, w *workload.Workload, set Settings) (*Result, error) {
	count := max(set.Count, 1)
	if len(w.Pods) > set.SmallPods {
		count = 1
	}
	results := make([]*Result, 0, count)
	for range count {
		r, err := once(ctx, s, w, set)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
		if r.Cut {
			break
		}
	}
	var all []float64
	for _, r := range results {
		all = append(all, r.Seconds)
	}
	slices.SortStableFunc(results, func(a, b *Result) int {
		if a.Seconds < b.Seconds {
			return -1
		}
		return 1
	})
	median := results[len(results)/2]
	median.All = all
	return median, nil
}

func once(ctx context.Context, s Solver, w *workload.Workload, set Settings) (*Result, error) {
	run, err := s.Prepare(w, set.Policy)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", w.Name, err)
	}
	limited, cancel := context.WithTimeout(ctx, set.Cut)
	defer cancel()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu := processorTime()
	begin := time.Now()
	err = run.Solve(limited)
	took := time.Since(begin)
	cpu = processorTime() - cpu
	runtime.ReadMemStats(&after)
	cut := took >= set.Cut || errors.Is(err, context.DeadlineExceeded)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && !cut {
		return nil, fmt.Errorf("solve %s: %w", w.Name, err)
	}
	o := run.Outcome()
	a := outcome.Audit(w, &o, cut)
	r := &Result{
		Seconds: took.Seconds(), CoreSeconds: run.Core().Seconds(), CPUSeconds: cpu.Seconds(),
		AllocMB: float64(after.TotalAlloc-before.TotalAlloc) / 1e6, Cut: cut,
		Nodes: a.Nodes, Cost: a.Cost, Unplaced: a.Unplaced, PlacedMilli: a.PlacedMilli, Bound: run.Bound(),
		Problems: a.Problems,
	}
	if cut {
		r.Seconds = set.Cut.Seconds()
	}
	return r, nil
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Contest is all of a comparison.
type Contest struct {
	// Tenon and Peer are the contestants; nil ones don't take part.
	Tenon, Peer Solver
	Settings    Settings
	// Lines gets one line for each workload, Messages what happens meanwhile.
	Lines, Messages io.Writer
}

// Run gives every workload to both and returns the rows of the comparison.
func (c *Contest) Run(ctx context.Context, kinds []workload.Kind) ([]*Row, error) {
	var rows []*Row
	for _, k := range kinds {
		row, err := c.row(ctx, k)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
		if _, err := fmt.Fprintln(c.Lines, row.Line()); err != nil {
			return rows, fmt.Errorf("write the line of %s: %w", k.Name, err)
		}
	}
	return rows, nil
}

func (c *Contest) row(ctx context.Context, k workload.Kind) (*Row, error) {
	w, err := k.Make()
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", k.Name, err)
	}
	row := &Row{Workload: w.Name, Pods: len(w.Pods), Types: len(w.Types)}
	for _, turn := range []struct {
		name   string
		solver Solver
		result **Result
		ignore **Result
	}{{"tenon", c.Tenon, &row.Tenon, &row.TenonIgnored}, {"peer", c.Peer, &row.Peer, &row.PeerIgnored}} {
		if turn.solver == nil {
			continue
		}
		if *turn.result, err = c.measure(ctx, turn.name, turn.solver, w, c.Settings); err != nil {
			return nil, err
		}
		if !hasWishes(w) {
			continue
		}
		ignoring := c.Settings
		ignoring.Policy.IgnorePreferences = true
		if *turn.ignore, err = c.measure(ctx, turn.name+", preferences ignored", turn.solver, w, ignoring); err != nil {
			return nil, err
		}
	}
	return row, nil
}

func (c *Contest) measure(ctx context.Context, name string, s Solver, w *workload.Workload,
	set Settings) (*Result, error) {
	fmt.Fprintf(c.Messages, "bench: %s: %s …\n", w.Name, name)
	r, err := Measure(ctx, s, w, set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(c.Messages, "bench: %s: %s took %.3f s: %d nodes, $%.3f/h, %d unplaced\n", w.Name, name, r.Seconds,
		r.Nodes, r.Cost, r.Unplaced)
	for _, problem := range r.Problems {
		fmt.Fprintf(c.Messages, "bench: %s: %s is wrong: %s\n", w.Name, name, problem)
	}
	return r, nil
}

// hasWishes reports whether the workload is about preferences.
func hasWishes(w *workload.Workload) bool {
	a := w.Pods[0].Spec.Affinity
	return a != nil && a.PodAntiAffinity != nil &&
		len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
}
