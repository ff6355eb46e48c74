package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tenon-sh/tenon/bench/internal/catalog"
	"github.com/tenon-sh/tenon/bench/internal/cluster"
	"github.com/tenon-sh/tenon/bench/internal/contestant"
	"github.com/tenon-sh/tenon/bench/internal/process"
	"github.com/tenon-sh/tenon/bench/internal/report"
)

// calm is how long a controller may tidy up after the last pod runs before it counts as idle; profileLength is how much
// of a rush is profiled.
const (
	calm          = 30 * time.Second
	profileLength = 30 * time.Second
)

// stage is a lab on which one contestant does one session.
type stage struct {
	*runner
	name      string
	session   session
	client    *cluster.Client
	watch     *cluster.Watch
	scenarios []*report.Scenario
	// controller is nil for the base.
	controller *process.Process
	profiled   bool
	nodes      int
}

// contest starts the contestant's controller and lets it do the session.
func (s *stage) contest(ctx context.Context, who contestant.Contestant, kubeconfig, folder string) (err error) {
	if err := s.client.InstallCRDs(ctx, who.CRDs); err != nil {
		return err
	}
	log, err := s.logFile(folder, s.name+"-"+s.session.name())
	if err != nil {
		return err
	}
	if s.controller, err = who.Start(kubeconfig, s.options.logLevel, log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.controller.Stop()) }()
	// A controller that ends by itself ends the run with its last words.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.controller.Ended():
			cancel(s.controller.Failure())
		case <-ctx.Done():
		}
	}()
	if err := within(ctx, startPatience, s.controller.AwaitReady); err != nil {
		return err
	}
	if err := s.client.CreatePool(ctx, s.session.pool()); err != nil {
		return err
	}
	s.profiled = who.Profiles && s.options.profiles != ""
	if s.watch, err = s.client.Watch(ctx, true); err != nil {
		return err
	}
	return s.all(ctx)
}

// base does the work on ready-made nodes.
func (s *stage) base(ctx context.Context) error {
	s.nodes = (s.session.pods + cluster.PodsPerNode - 1) / cluster.PodsPerNode
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	if s.watch, err = s.client.Watch(ctx, false); err != nil {
		return err
	}
	if err := s.client.CreateNodes(ctx, s.nodes); err != nil {
		return err
	}
	if err := s.await(ctx, startPatience, s.watch.ReadyNodes(s.nodes)); err != nil {
		return err
	}
	return s.up(ctx)
}

// all does the scenarios of the session. Where the cluster is not furnished pods come in any case: the others begin
// with them.
func (s *stage) all(ctx context.Context) error {
	switch {
	case s.session.has(report.Settle):
		return s.settle(ctx)
	case s.session.has(report.Drift):
		return s.drift(ctx)
	}
	stop := s.profileRush(ctx)
	err := s.up(ctx)
	stop()
	if err != nil {
		return err
	}
	if s.session.has(report.RSS) || s.session.has(report.Idle) {
		if err := s.rest(ctx); err != nil {
			return err
		}
	}
	if s.session.has(report.Down) {
		return s.down(ctx)
	}
	return nil
}

// up hands the work over and measures until every pod is Running.
func (s *stage) up(ctx context.Context) error {
	m, err := s.begin()
	if err != nil {
		return err
	}
	s.watch.Begin(m.began)
	if err := s.client.HandOver(ctx, s.session.pods); err != nil {
		return err
	}
	if err := s.await(ctx, s.options.timeout, s.watch.Running(s.session.pods)); err != nil {
		return err
	}
	result, err := m.end()
	if err != nil {
		return err
	}
	result.Stages = s.watch.Stages()
	if s.controller != nil {
		if err := s.bill(ctx, result); err != nil {
			return err
		}
	}
	s.add(report.Up, result)
	for _, step := range cluster.Steps() {
		if span, ok := result.Stages[step]; ok {
			fmt.Fprintf(s.messages, "bench:   %-18s %6d  first %7.2f s  half %7.2f s  nine of ten %7.2f s  last "+
				"%7.2f s\n",
				step, span.Count, span.First, span.Half, span.Most, span.Last)
		}
	}
	return nil
}

// bill counts the nodes and what they cost.
func (s *stage) bill(ctx context.Context, result *report.Result) error {
	nodes, err := s.client.NodeLabels(ctx)
	if err != nil {
		return err
	}
	s.nodes = len(nodes)
	result.Nodes = len(nodes)
	result.NodeTypes = make(map[string]int)
	for _, labels := range nodes {
		price, err := s.prices.Price(labels)
		if err != nil {
			return fmt.Errorf("make out the bill: %w", err)
		}
		result.Cost += price
		result.NodeTypes[catalog.Kind(labels)]++
	}
	return nil
}

// rest lets the controller come to rest, and then measures its memory and what it does while nothing happens.
func (s *stage) rest(ctx context.Context) error {
	s.tell(fmt.Sprintf("letting things calm down for %s", calm))
	if err := sleep(ctx, calm); err != nil {
		return err
	}
	m, err := s.begin()
	if err != nil {
		return err
	}
	if s.session.has(report.RSS) {
		result, err := m.end()
		if err != nil {
			return err
		}
		s.add(report.RSS, result)
	}
	if s.session.has(report.Idle) {
		s.tell(fmt.Sprintf("looking at an idle controller for %s", s.options.idle))
		if err := sleep(ctx, s.options.idle); err != nil {
			return err
		}
		result, err := m.end()
		if err != nil {
			return err
		}
		s.add(report.Idle, result)
	}
	return s.profileRest(ctx)
}

// down takes the work back and measures until the last node is gone.
func (s *stage) down(ctx context.Context) error {
	m, err := s.begin()
	if err != nil {
		return err
	}
	if err := s.client.TakeBack(ctx); err != nil {
		return err
	}
	if err := s.await(ctx, s.options.timeout, s.watch.NoNodes); err != nil {
		return err
	}
	result, err := m.end()
	if err != nil {
		return err
	}
	s.add(report.Down, result)
	return nil
}

// await waits for something and tells how far it is.
func (s *stage) await(ctx context.Context, patience time.Duration, wait cluster.Wait) error {
	begin := time.Now()
	return within(ctx, patience, func(ctx context.Context) error {
		return s.watch.Await(ctx, wait, func(state string) {
			s.tell(fmt.Sprintf("%.0f s: %s", time.Since(begin).Seconds(), state))
		})
	})
}

// tell shows progress to the one who waits.
func (s *stage) tell(state string) {
	fmt.Fprintf(s.messages, "bench: %s, %s: %s\n", s.name, s.session.name(), state)
}

// add puts a result into its row, if that was asked for, and shows it.
func (s *stage) add(kind string, r *report.Result) {
	for _, scenario := range s.scenarios {
		if scenario.Kind == kind {
			scenario.Add(s.name, r)
		}
	}
	s.tell(fmt.Sprintf("%s: %.2f s, %d nodes, %.1f MB (peak %.1f), %.2f s CPU (load %.1f)",
		kind, r.Seconds, r.Nodes, r.RSSMegabytes, r.PeakMegabytes, r.CPUSeconds, r.Load))
}

// profileRush takes a profile of the first seconds in the background, if that was asked for; the returned function
// waits for its end.
func (s *stage) profileRush(ctx context.Context) (stop func()) {
	if !s.profiled {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.controller.ProfileCPU(ctx, profileLength, s.profile("up-cpu")); err != nil {
			s.tell(err.Error())
		}
	}()
	return func() { <-done }
}

// profileRest takes profiles of a controller at rest, after everything was measured.
func (s *stage) profileRest(ctx context.Context) error {
	if !s.profiled {
		return nil
	}
	return errors.Join(
		s.controller.ProfileHeap(ctx, s.profile("rest-heap")),
		s.controller.ProfileCPU(ctx, profileLength, s.profile("rest-cpu")))
}

func (s *stage) profile(what string) string {
	return filepath.Join(s.options.profiles, fmt.Sprintf("%s-%s-%s.pprof", s.name, s.session.name(), what))
}

// sleep lets time pass, which is what is measured.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
