// Package report holds what a benchmark has measured and turns it into medians, one line for people and scripts, and a
// JSON file with every single run. It is pure but for WriteJSON, which writes the one file that it is given.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Span says when the first and the last of a kind of thing happened, in seconds since the work was handed over.
type Span struct {
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	Count int     `json:"count"`
}

// Run is one contestant doing the work once.
type Run struct {
	Contestant string `json:"contestant"`
	Number     int    `json:"number"`
	// UpSeconds is from the call that creates the Deployment until every pod is Running.
	UpSeconds float64 `json:"up_s"`
	// DownSeconds is from the call that deletes the Deployment until the last node is gone.
	DownSeconds float64 `json:"down_s"`
	Nodes       int     `json:"nodes"`
	// NodeTypes counts the nodes by instance type and capacity type.
	NodeTypes map[string]int `json:"node_types"`
	// Cost is what the nodes cost in an hour.
	Cost float64 `json:"cost"`
	// RSSMegabytes and CPUSeconds are the controller's, from its start until every pod is Running.
	RSSMegabytes float64 `json:"rss_mb"`
	CPUSeconds   float64 `json:"cpu_s"`
	// Load is the machine's one-minute load average when the work was handed over.
	Load float64 `json:"load"`
	// Stages are the steps from the Deployment to Running pods.
	Stages map[string]Span `json:"stages"`
}

// Workload is the same work done by the contestants, several times each.
type Workload struct {
	Scenario string `json:"scenario"`
	Pods     int    `json:"pods"`
	Runs     []Run  `json:"runs"`
}

// Contestants whose figures the line compares.
const (
	Tenon = "tenon"
	Peer  = "peer"
)

// values collects one figure of a contestant's runs.
func (w *Workload) values(contestant string, figure func(Run) float64) []float64 {
	var out []float64
	for _, r := range w.Runs {
		if r.Contestant == contestant {
			out = append(out, figure(r))
		}
	}
	return out
}

// Median is the middle of values, the mean of the two middle ones if their number is even. It is false without values.
func Median(values []float64) (float64, bool) {
	if len(values) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half], true
	}
	return (sorted[half-1] + sorted[half]) / 2, true
}

// figures are the columns of the line: a suffix of the key, its decimals and where it comes from.
func figures() []figure {
	return []figure{
		{"nodes", 0, func(r Run) float64 { return float64(r.Nodes) }},
		{"cost", 3, func(r Run) float64 { return r.Cost }},
		{"down_s", 2, func(r Run) float64 { return r.DownSeconds }},
		{"rss_mb", 1, func(r Run) float64 { return r.RSSMegabytes }},
		{"cpu_s", 2, func(r Run) float64 { return r.CPUSeconds }},
	}
}

type figure struct {
	key      string
	decimals int
	of       func(Run) float64
}

// missing stands where a contestant did not run.
const missing = "-"

// Line gives the medians as key=value pairs.
func (w *Workload) Line() string {
	up := func(r Run) float64 { return r.UpSeconds }
	tenon, haveTenon := Median(w.values(Tenon, up))
	peer, havePeer := Median(w.values(Peer, up))
	speedup := missing
	if haveTenon && havePeer && tenon > 0 {
		speedup = fmt.Sprintf("%.2f", peer/tenon)
	}
	parts := []string{
		"scenario=" + w.Scenario,
		fmt.Sprintf("pods=%d", w.Pods),
		"tenon_s=" + number(tenon, haveTenon, 2),
		"peer_s=" + number(peer, havePeer, 2),
		"speedup=" + speedup,
	}
	for _, f := range figures() {
		for _, contestant := range []string{Tenon, Peer} {
			m, ok := Median(w.values(contestant, f.of))
			parts = append(parts, contestant+"_"+f.key+"="+number(m, ok, f.decimals))
		}
	}
	return strings.Join(parts, " ")
}

func number(value float64, known bool, decimals int) string {
	if !known {
		return missing
	}
	return fmt.Sprintf("%.*f", decimals, value)
}

// WriteJSON writes the line and every run to path, and makes the folder if there is none.
func WriteJSON(path string, w *Workload) error {
	content, err := json.MarshalIndent(struct {
		Line string `json:"line"`
		*Workload
	}{w.Line(), w}, "", "  ")
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
