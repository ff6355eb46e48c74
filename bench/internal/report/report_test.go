package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestMedian(t *testing.T) {
	cases := []struct {
		name   string
		values []float64
		want   float64
		known  bool
	}{
		{"none", nil, 0, false},
		{"one", []float64{3}, 3, true},
		{"odd, unsorted", []float64{9, 1, 5}, 5, true},
		{"even: mean of the middle", []float64{4, 1, 2, 100}, 3, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, known := Median(c.values)
			if got != c.want || known != c.known {
				t.Errorf("Median(%v) = %v, %v; want %v, %v", c.values, got, known, c.want, c.known)
			}
		})
	}
}

func TestMedianLeavesItsInputAlone(t *testing.T) {
	values := []float64{3, 1, 2}
	Median(values)
	if values[0] != 3 || values[1] != 1 || values[2] != 2 {
		t.Errorf("the values were sorted in place: %v", values)
	}
}

func both() *Workload {
	return &Workload{Scenario: "pods-500", Pods: 500, Runs: []Run{
		{Contestant: Tenon, UpSeconds: 4, Nodes: 8, Cost: 1.23456, DownSeconds: 2, RSSMegabytes: 60, CPUSeconds: 0.5},
		{Contestant: Peer, UpSeconds: 10.5, Nodes: 9, Cost: 2, DownSeconds: 6.126, RSSMegabytes: 120, CPUSeconds: 7},
		{Contestant: Tenon, UpSeconds: 5, Nodes: 8, Cost: 1.23456, DownSeconds: 2, RSSMegabytes: 60, CPUSeconds: 0.5},
		{Contestant: "floor", UpSeconds: 1},
		{Contestant: Tenon, UpSeconds: 90, Nodes: 8, Cost: 1.23456, DownSeconds: 2, RSSMegabytes: 60, CPUSeconds: 0.5},
	}}
}

const bothLine = "scenario=pods-500 pods=500 tenon_s=5.00 peer_s=10.50 speedup=2.10 tenon_nodes=8 peer_nodes=9 " +
	"tenon_cost=1.235 peer_cost=2.000 tenon_down_s=2.00 peer_down_s=6.13 tenon_rss_mb=60.0 peer_rss_mb=120.0 tenon_cpu_s=0.50 peer_cpu_s=7.00"

func TestLine(t *testing.T) {
	if got := both().Line(); got != bothLine {
		t.Errorf("got\n%s\nwant\n%s", got, bothLine)
	}
}

func TestLineOfOneContestant(t *testing.T) {
	w := both()
	w.Runs = w.Runs[:1]
	want := "scenario=pods-500 pods=500 tenon_s=4.00 peer_s=- speedup=- tenon_nodes=8 peer_nodes=- " +
		"tenon_cost=1.235 peer_cost=- tenon_down_s=2.00 peer_down_s=- tenon_rss_mb=60.0 peer_rss_mb=- tenon_cpu_s=0.50 peer_cpu_s=-"
	if got := w.Line(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWriteJSONKeepsEveryRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "peer.json")
	if err := WriteJSON(path, both()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Line     string
		Scenario string
		Runs     []Run
	}
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	if got.Line != bothLine || got.Scenario != "pods-500" || len(got.Runs) != 5 || got.Runs[1].UpSeconds != 10.5 {
		t.Errorf("the file lost something: %s", content)
	}
}
