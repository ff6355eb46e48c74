package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func up() *Scenario {
	s := &Scenario{Kind: Up, Pods: 1000}
	s.Add(Tenon, &Result{Seconds: 10, Nodes: 50, RSSMegabytes: 60, PeakMegabytes: 70.25, CPUSeconds: 1.5,
		Cost: 1.23456})
	s.Add(Peer, &Result{Seconds: 25.126, Nodes: 51, RSSMegabytes: 160, PeakMegabytes: 170, CPUSeconds: 15, Cost: 2})
	s.Add(Base, &Result{Seconds: 8, Nodes: 50})
	return s
}

func TestLine(t *testing.T) {
	idle := &Scenario{Kind: Idle, Pods: 1000}
	idle.Add(Tenon, &Result{Seconds: 60, Nodes: 50, RSSMegabytes: 60, CPUSeconds: 0.6})
	idle.Add(Peer, &Result{Seconds: 60, Nodes: 50, RSSMegabytes: 160, CPUSeconds: 6})
	rss := &Scenario{Kind: RSS, Pods: 20000}
	rss.Add(Tenon, &Result{Seconds: 1, Nodes: 1000, RSSMegabytes: 400, PeakMegabytes: 410})
	down := &Scenario{Kind: Down, Pods: 1000}
	down.Add(Peer, &Result{Seconds: 9, Nodes: 50, RSSMegabytes: 160, CPUSeconds: 6})
	settle := &Scenario{Kind: Settle, Pods: 1000, Goal: 250}
	settle.Add(Tenon, &Result{Seconds: 20, Nodes: 30, RSSMegabytes: 60, CPUSeconds: 2, Cost: 9.5, Evictions: 12,
		LeastRunning: 245})
	settle.Add(Peer, &Result{Seconds: 200, Nodes: 35, RSSMegabytes: 160, CPUSeconds: 30, Cost: 11, Evictions: 80,
		LeastRunning: 190})
	drift := &Scenario{Kind: Drift, Pods: 1000, Goal: 500}
	drift.Add(Tenon, &Result{Seconds: 60, Nodes: 500, RSSMegabytes: 60, CPUSeconds: 9, Evictions: 1000,
		LeastRunning: 950, Roll: &Roll{First: 0.5, Pause: 0.25, Most: 50}})
	cases := []struct {
		scenario *Scenario
		want     string
	}{
		{settle, "scenario=settle-250 pods=1000 nodes=30 tenon_s=20.00 peer_s=200.00 tenon_rss_mb=60.0 " +
			"peer_rss_mb=160.0 tenon_cpu_s=2.00 peer_cpu_s=30.00 " +
			"tenon_nodes=30 peer_nodes=35 tenon_cost=9.500 peer_cost=11.000 tenon_evictions=12 peer_evictions=80 " +
			"tenon_least_running=245 peer_least_running=190"},
		{drift, "scenario=drift-500 pods=1000 nodes=500 tenon_s=60.00 peer_s=- tenon_rss_mb=60.0 peer_rss_mb=- " +
			"tenon_cpu_s=9.00 peer_cpu_s=- " +
			"tenon_pause_s=0.25 peer_pause_s=- tenon_most=50 peer_most=- tenon_evictions=1000 peer_evictions=- " +
			"tenon_least_running=950 peer_least_running=-"},
		{up(), "scenario=up-1000 pods=1000 nodes=50 tenon_s=10.00 peer_s=25.13 tenon_rss_mb=60.0 peer_rss_mb=160.0 " +
			"tenon_cpu_s=1.50 peer_cpu_s=15.00 " +
			"base_s=8.00 tenon_x_base=1.25 peer_x_base=3.14 tenon_nodes=50 peer_nodes=51 tenon_cost=1.235 " +
			"peer_cost=2.000 tenon_peak_mb=70.2 peer_peak_mb=170.0"},
		{idle, "scenario=idle-1000 pods=1000 nodes=50 tenon_s=60.00 peer_s=60.00 tenon_rss_mb=60.0 peer_rss_mb=160.0 " +
			"tenon_cpu_s=0.60 peer_cpu_s=6.00 " +
			"tenon_idle_pct=1.00 peer_idle_pct=10.00"},
		{rss, "scenario=rss-20000 pods=20000 nodes=1000 tenon_s=1.00 peer_s=- tenon_rss_mb=400.0 peer_rss_mb=- " +
			"tenon_cpu_s=0.00 peer_cpu_s=- " +
			"tenon_peak_mb=410.0 peer_peak_mb=-"},
		{down, "scenario=down-1000 pods=1000 nodes=50 tenon_s=- peer_s=9.00 tenon_rss_mb=- peer_rss_mb=160.0 " +
			"tenon_cpu_s=- peer_cpu_s=6.00"},
		{&Scenario{Kind: Down, Pods: 5}, "scenario=down-5 pods=5 nodes=- tenon_s=- peer_s=- tenon_rss_mb=- " +
			"peer_rss_mb=- tenon_cpu_s=- peer_cpu_s=-"},
	}
	for _, c := range cases {
		if got := c.scenario.Line(); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

func TestRatioNeedsBoth(t *testing.T) {
	s := &Scenario{Kind: Up, Pods: 1}
	s.Add(Tenon, &Result{Seconds: 1})
	if got := s.ratio(Tenon, Base); got != missing {
		t.Errorf("got %s without a base", got)
	}
	s.Add(Base, &Result{})
	if got := s.ratio(Tenon, Base); got != missing {
		t.Errorf("got %s from a base of no time", got)
	}
}

func TestWriteJSONKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "lab.json")
	if err := WriteJSON(path, []*Scenario{up()}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scenarios []struct {
			Line     string
			Scenario string
			Pods     int
			Results  map[string]Result
		}
	}
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Scenarios) != 1 {
		t.Fatalf("the file lost something: %s", content)
	}
	s := got.Scenarios[0]
	if s.Line != up().Line() || s.Scenario != "up-1000" || s.Pods != 1000 || s.Results[Peer].Seconds != 25.126 ||
		s.Results[Base].Nodes != 50 {
		t.Errorf("the file lost something: %s", content)
	}
}
