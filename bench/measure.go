package main

import (
	"time"

	"github.com/tenon-sh/tenon/bench/internal/process"
	"github.com/tenon-sh/tenon/bench/internal/report"
)

// measure is a scenario under way.
type measure struct {
	stage *stage
	began time.Time
	load  float64
	used  process.Usage
}

// begin takes down what the controller has used so far.
func (s *stage) begin() (*measure, error) {
	load, err := process.Load()
	if err != nil {
		return nil, err
	}
	m := &measure{stage: s, load: load}
	if s.controller != nil {
		if m.used, err = s.controller.Usage(); err != nil {
			return nil, err
		}
	}
	m.began = time.Now()
	return m, nil
}

// end says what the controller has used since the beginning.
func (m *measure) end() (*report.Result, error) {
	r := &report.Result{Seconds: time.Since(m.began).Seconds(), Nodes: m.stage.nodes, Load: m.load}
	if m.stage.controller == nil {
		return r, nil
	}
	used, err := m.stage.controller.Usage()
	if err != nil {
		return nil, err
	}
	r.CPUSeconds = used.CPUSeconds - m.used.CPUSeconds
	r.RSSMegabytes, r.PeakMegabytes = used.Megabytes, used.PeakMegabytes
	return r, nil
}
