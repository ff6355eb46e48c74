// Package report holds what a benchmark has measured and turns it into one line for each scenario, for people and
// scripts, and a JSON file with everything. It is pure but for WriteJSON, which writes the one file that it is given.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Those who do the work. Base is the lab itself with ready-made nodes and no autoscaler: as fast as it can be.
const (
	Tenon = "tenon"
	Peer  = "peer"
	Base  = "base"
)

// Kinds of scenario.
const (
	Up   = "up"   // from the calls that create the pods until all are Running
	Down = "down" // from the calls that delete them until the last node is gone
	RSS  = "rss"  // memory with all pods Running and nothing left to do
	Idle = "idle" // processor time while nothing happens
	// Settle is from the calls that take most of the pods away until nodes and pods no longer change.
	Settle = "settle"
	// Drift is from a change of the pool's template until no node of the old kind is left.
	Drift = "drift"
)

// Kinds lists the kinds of scenario that one cluster goes through, in the order in which they happen.
func Kinds() []string { return []string{Up, RSS, Idle, Down} }

// Span says when the first and the last of a kind of thing happened, in seconds since the work was handed over.
type Span struct {
	First float64 `json:"first"`
	// Half and most (nine of ten) of the objects had taken the step by then.
	Half  float64 `json:"half"`
	Most  float64 `json:"most"`
	Last  float64 `json:"last"`
	Count int     `json:"count"`
}

// Result is what one contestant took for one scenario. The controller's figures are zero for the base.
type Result struct {
	Seconds float64 `json:"seconds"`
	Nodes   int     `json:"nodes"`
	// CPUSeconds is the processor time that the controller spent on this scenario.
	CPUSeconds float64 `json:"cpu_s"`
	// RSSMegabytes is the controller's memory at the end of the scenario, PeakMegabytes the most since its start.
	RSSMegabytes  float64 `json:"rss_mb"`
	PeakMegabytes float64 `json:"peak_mb"`
	// Cost is what the nodes cost in an hour.
	Cost float64 `json:"cost,omitempty"`
	// NodeTypes counts the nodes by instance type and capacity type.
	NodeTypes map[string]int `json:"node_types,omitempty"`
	// Load is the machine's one-minute load average when the scenario began.
	Load float64 `json:"load"`
	// Stages are the steps from the first call to Running pods.
	Stages map[string]Span `json:"stages,omitempty"`
	// CostBefore is what the nodes cost in an hour before the scenario.
	CostBefore float64 `json:"cost_before,omitempty"`
	// Evictions counts the pods that had to leave although their owner wanted them.
	Evictions int `json:"evictions,omitempty"`
	// LeastRunning is how many of the pods ran when the fewest did.
	LeastRunning int `json:"least_running,omitempty"`
	// Roll says how a change of all nodes went.
	Roll *Roll `json:"roll,omitempty"`
}

// Roll says how a change of all nodes went, in seconds and nodes.
type Roll struct {
	// First is when the first node was chosen.
	First float64 `json:"first_s"`
	// Pause is the longest time in which the budget had room and nodes were left, and none was chosen.
	Pause float64 `json:"pause_s"`
	// Most is how many nodes were on their way out at the same time, at most.
	Most int `json:"most"`
}

// Scenario is the same work done by each contestant.
type Scenario struct {
	Kind string `json:"kind"`
	Pods int    `json:"pods"`
	// Goal is what the name ends in where that is not the number of pods: how many are left of them, or how many nodes
	// change.
	Goal    int                `json:"goal,omitempty"`
	Results map[string]*Result `json:"results"`
}

// Name is how the line and the flags call the scenario.
func (s *Scenario) Name() string {
	if s.Goal > 0 {
		return Name(s.Kind, s.Goal)
	}
	return Name(s.Kind, s.Pods)
}

// Name is how the scenario of a kind and a size is called.
func Name(kind string, size int) string { return fmt.Sprintf("%s-%d", kind, size) }

// Add puts a contestant's result in.
func (s *Scenario) Add(contestant string, r *Result) {
	if s.Results == nil {
		s.Results = make(map[string]*Result)
	}
	s.Results[contestant] = r
}

// missing stands where a contestant did not run or did not come to an end.
const missing = "-"

// number writes a figure of a contestant's result.
func (s *Scenario) number(contestant string, decimals int, of func(*Result) float64) string {
	r := s.Results[contestant]
	if r == nil {
		return missing
	}
	return fmt.Sprintf("%.*f", decimals, of(r))
}

func seconds(r *Result) float64 { return r.Seconds }
func nodes(r *Result) float64   { return float64(r.Nodes) }
func rss(r *Result) float64     { return r.RSSMegabytes }
func peak(r *Result) float64    { return r.PeakMegabytes }
func cpu(r *Result) float64     { return r.CPUSeconds }
func cost(r *Result) float64    { return r.Cost }
func idle(r *Result) float64    { return 100 * r.CPUSeconds / r.Seconds }

func evictions(r *Result) float64    { return float64(r.Evictions) }
func leastRunning(r *Result) float64 { return float64(r.LeastRunning) }
func pause(r *Result) float64        { return r.Roll.Pause }
func most(r *Result) float64         { return float64(r.Roll.Most) }

// ratio writes how many times as long one contestant took as another.
func (s *Scenario) ratio(a, b string) string {
	x, y := s.Results[a], s.Results[b]
	if x == nil || y == nil || y.Seconds <= 0 {
		return missing
	}
	return fmt.Sprintf("%.2f", x.Seconds/y.Seconds)
}

// Line gives the figures as key=value pairs: the same keys for every scenario, then those that belong to its kind.
func (s *Scenario) Line() string {
	out := []string{
		"scenario=" + s.Name(),
		fmt.Sprintf("pods=%d", s.Pods),
		"nodes=" + s.nodes(),
	}
	both := func(key string, decimals int, of func(*Result) float64) {
		for _, who := range []string{Tenon, Peer} {
			out = append(out, who+"_"+key+"="+s.number(who, decimals, of))
		}
	}
	both("s", 2, seconds)
	both("rss_mb", 1, rss)
	both("cpu_s", 2, cpu)
	switch s.Kind {
	case Up:
		out = append(out, "base_s="+s.number(Base, 2, seconds), "tenon_x_base="+s.ratio(Tenon, Base), "peer_x_base="+
			s.ratio(Peer, Base))
		both("nodes", 0, nodes)
		both("cost", 3, cost)
		both("peak_mb", 1, peak)
	case RSS:
		both("peak_mb", 1, peak)
	case Idle:
		both("idle_pct", 2, idle)
	case Settle:
		both("nodes", 0, nodes)
		both("cost", 3, cost)
		both("evictions", 0, evictions)
		both("least_running", 0, leastRunning)
	case Drift:
		both("pause_s", 2, pause)
		both("most", 0, most)
		both("evictions", 0, evictions)
		both("least_running", 0, leastRunning)
	}
	return strings.Join(out, " ")
}

// nodes is the number of nodes of the first contestant that has one.
func (s *Scenario) nodes() string {
	for _, who := range []string{Tenon, Peer, Base} {
		if s.Results[who] != nil {
			return s.number(who, 0, nodes)
		}
	}
	return missing
}

// WriteJSON writes the lines and all figures to path, and makes the folder if there is none.
func WriteJSON(path string, scenarios []*Scenario) error {
	type entry struct {
		Line string `json:"line"`
		Name string `json:"scenario"`
		*Scenario
	}
	entries := []entry{}
	for _, s := range scenarios {
		entries = append(entries, entry{s.Line(), s.Name(), s})
	}
	content, err := json.MarshalIndent(map[string]any{"scenarios": entries}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of the figures: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
