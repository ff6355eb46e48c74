package contest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/bench/internal/outcome"
	"github.com/tenon-sh/tenon/bench/internal/workload"
)

// sleeper places nothing. It works until its time is up if it is slow.
type sleeper struct {
	slow bool
	err  error
	runs *int
}

func (s sleeper) Prepare(*workload.Workload, Policy) (Run, error) {
	*s.runs++
	return s, nil
}

func (s sleeper) Solve(ctx context.Context) error {
	if s.slow {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.err
}

func (s sleeper) Outcome() outcome.Outcome { return outcome.Outcome{} }
func (s sleeper) Bound() float64           { return 3 }
func (s sleeper) Core() time.Duration      { return time.Second }

func small(t *testing.T) *workload.Workload {
	t.Helper()
	k, err := workload.Find("diverse-100")
	if err != nil {
		t.Fatal(err)
	}
	w, err := k.Make()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSlowSolverIsCutOff(t *testing.T) {
	runs := 0
	r, err := Measure(t.Context(), sleeper{slow: true, runs: &runs}, small(t), Settings{Cut: 20 * time.Millisecond,
		Count: 3, SmallPods: 100})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Cut || r.Seconds != 0.02 || r.Unplaced != 100 || runs != 1 || len(r.Problems) != 0 {
		t.Errorf("after %d runs: %+v", runs, r)
	}
}

func TestSmallWorkloadsAreRunSeveralTimes(t *testing.T) {
	for _, c := range []struct{ limit, want int }{{100, 3}, {99, 1}} {
		runs := 0
		r, err := Measure(t.Context(), sleeper{runs: &runs}, small(t), Settings{Cut: time.Minute, Count: 3,
			SmallPods: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		if runs != c.want || len(r.All) != c.want || r.Cut || r.Bound != 3 || r.CoreSeconds != 1 {
			t.Errorf("limit %d: %d runs, %+v", c.limit, runs, r)
		}
		if len(r.Problems) == 0 {
			t.Error("a solver that forgets all pods passes")
		}
	}
}

func TestFailureAndInterruptEndTheContest(t *testing.T) {
	runs, boom := 0, errors.New("boom")
	if _, err := Measure(t.Context(), sleeper{err: boom, runs: &runs}, small(t),
		Settings{Cut: time.Minute}); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, sleeper{slow: true, runs: &runs}, small(t), Settings{Cut: time.Minute}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestContestWritesALineForEachWorkload(t *testing.T) {
	var lines bytes.Buffer
	runs := 0
	c := &Contest{Tenon: sleeper{runs: &runs}, Lines: &lines, Messages: io.Discard,
		Settings: Settings{Cut: time.Minute, Count: 1}}
	kinds, err := workload.Select("^(diverse-100|preferences-4000)$")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := c.Run(t.Context(), kinds)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(lines.String(), "\n"); got != 2 || len(rows) != 2 || runs != 3 {
		t.Errorf("%d lines, %d rows, %d runs; preferences are run twice", got, len(rows), runs)
	}
	if !strings.Contains(lines.String(), "tenon_nodes_ignored=0") || !strings.Contains(lines.String(), "peer_s=-") {
		t.Errorf("got %s", lines.String())
	}
}

func TestLineHasTheKeysThatWerePromised(t *testing.T) {
	r := &Row{Workload: "fleet-2000", Pods: 2000, Types: 855,
		Tenon: &Result{Seconds: 0.5, CoreSeconds: 0.25, CPUSeconds: 0.75, AllocMB: 10, Nodes: 4, Cost: 9, Bound: 8,
			PlacedMilli: 7},
		Peer: &Result{Seconds: 300, CPUSeconds: 400, AllocMB: 1000, Nodes: 3, Cost: 10, Unplaced: 5, Cut: true,
			PlacedMilli: 7, Problems: []string{"wrong"}},
	}
	want := "workload=fleet-2000 pods=2000 types=855 tenon_s=0.5000 peer_s=300.0000 speedup=600.00 tenon_nodes=4 " +
		"peer_nodes=3 tenon_cost=9.0000 peer_cost=10.0000 " +
		"bound_cost=8.0000 tenon_alloc_mb=10.0 peer_alloc_mb=1000.0 tenon_unplaced=0 peer_unplaced=5 " +
		"tenon_valid=true peer_valid=false peer_cut=true tenon_place_s=0.2500 " +
		"tenon_cpu_s=0.7500 peer_cpu_s=400.0000 cheaper_pct=10.00 above_bound_pct=12.50"
	if got := r.Line(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReportIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "peer.json")
	row := &Row{Workload: "fleet-2000", Pods: 2000, Tenon: &Result{Seconds: 1}}
	if err := NewReport("peer v1", []*Row{row}).Write(path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(content, &back); err != nil || back.Peer != "peer v1" || len(back.Rows) != 1 ||
		back.Lines[0] != row.Line() {
		t.Errorf("%v: %+v", err, back)
	}
}
