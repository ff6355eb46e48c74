package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tenon-sh/tenon/bench/internal/catalog"
	"github.com/tenon-sh/tenon/bench/internal/cluster"
	"github.com/tenon-sh/tenon/bench/internal/contestant"
	"github.com/tenon-sh/tenon/bench/internal/process"
	"github.com/tenon-sh/tenon/bench/internal/report"
)

const (
	// startPatience bounds the start of a controller, workPatience each of the two measured waits.
	startPatience = 2 * time.Minute
	workPatience  = 10 * time.Minute
	// floorName stands for the run without an autoscaler, on ready-made nodes of floorCPUs each.
	floorName = "floor"
	floorCPUs = 64
)

// runner carries what every run needs.
type runner struct {
	options  options
	tenon    string
	prices   *catalog.Catalog
	messages io.Writer
}

// all lets the contestants take turns, so that a slow hour of the machine hits them alike.
func (r *runner) all(ctx context.Context, contestants []contestant.Contestant, work *report.Workload) error {
	for number := 1; number <= r.options.count; number++ {
		for i := range contestants {
			if err := r.one(ctx, &contestants[i], report.Run{Contestant: contestants[i].Name, Number: number}, work); err != nil {
				return err
			}
		}
		if r.options.floor {
			if err := r.one(ctx, nil, report.Run{Contestant: floorName, Number: number}, work); err != nil {
				return err
			}
		}
	}
	return nil
}

// one does the work once on a fresh lab, and ends the lab. Without a contestant the nodes are ready-made.
func (r *runner) one(ctx context.Context, who *contestant.Contestant, run report.Run, work *report.Workload) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s, run %d: %w", run.Contestant, run.Number, err)
		}
	}()
	folder, err := os.MkdirTemp("", "tenon-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the lab: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	lab, err := cluster.Up(ctx, r.tenon, filepath.Join(folder, "lab"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Down()) }()
	client, err := lab.Client()
	if err != nil {
		return err
	}
	if err := client.AwaitServiceAccount(ctx); err != nil {
		return err
	}
	s := &stage{runner: r, client: client, run: &run}
	if who == nil {
		err = s.floor(ctx)
	} else {
		err = s.contest(ctx, *who, lab.Kubeconfig(), folder)
	}
	if err != nil {
		return err
	}
	work.Runs = append(work.Runs, run)
	s.tell()
	return nil
}

// stage is a lab on which one run takes place.
type stage struct {
	*runner
	client *cluster.Client
	run    *report.Run
}

// contest starts the contestant's controller, hands the work over and takes it back.
func (s *stage) contest(ctx context.Context, who contestant.Contestant, kubeconfig, folder string) (err error) {
	if err := s.client.InstallCRDs(ctx, who.CRDs); err != nil {
		return err
	}
	log, err := s.logFile(folder)
	if err != nil {
		return err
	}
	controller, err := who.Start(kubeconfig, s.options.logLevel, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, controller.Stop()) }()
	// A controller that ends by itself ends the run with its last words.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-controller.Ended():
			cancel(controller.Failure())
		case <-ctx.Done():
		}
	}()
	if err := within(ctx, startPatience, controller.AwaitReady); err != nil {
		return err
	}
	if err := s.client.CreatePool(ctx); err != nil {
		return err
	}
	watch, err := s.client.Watch(ctx, true)
	if err != nil {
		return err
	}
	if err := s.up(ctx, watch); err != nil {
		return err
	}
	if err := s.account(ctx, controller); err != nil {
		return err
	}
	return s.down(ctx, watch.AwaitNoNodes)
}

// floor does the work on ready-made nodes.
func (s *stage) floor(ctx context.Context) error {
	s.run.Nodes = (s.options.pods + floorCPUs - 1) / floorCPUs
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := s.client.Watch(ctx, false)
	if err != nil {
		return err
	}
	if err := s.client.CreateNodes(ctx, s.run.Nodes, floorCPUs); err != nil {
		return err
	}
	ready := func(ctx context.Context) error { return watch.AwaitReadyNodes(ctx, s.run.Nodes) }
	if err := within(ctx, startPatience, ready); err != nil {
		return err
	}
	if err := s.up(ctx, watch); err != nil {
		return err
	}
	return s.down(ctx, watch.AwaitNoPods)
}

// up hands the work over and measures until every pod is Running.
func (s *stage) up(ctx context.Context, watch *cluster.Watch) error {
	load, err := process.Load()
	if err != nil {
		return err
	}
	s.run.Load = load
	begin := time.Now()
	watch.Begin(begin)
	if err := s.client.HandOver(ctx, s.options.pods); err != nil {
		return err
	}
	running := func(ctx context.Context) error { return watch.AwaitRunning(ctx, s.options.pods) }
	if err := within(ctx, workPatience, running); err != nil {
		return err
	}
	s.run.UpSeconds = time.Since(begin).Seconds()
	s.run.Stages = watch.Stages()
	return nil
}

// account writes down what the work costs: nodes, money, memory, processor time.
func (s *stage) account(ctx context.Context, controller *process.Process) error {
	usage, err := controller.Usage()
	if err != nil {
		return err
	}
	s.run.RSSMegabytes, s.run.CPUSeconds = usage.PeakMegabytes, usage.CPUSeconds
	nodes, err := s.client.NodeLabels(ctx)
	if err != nil {
		return err
	}
	s.run.Nodes = len(nodes)
	s.run.NodeTypes = make(map[string]int)
	for _, labels := range nodes {
		price, err := s.prices.Price(labels)
		if err != nil {
			return fmt.Errorf("make out the bill: %w", err)
		}
		s.run.Cost += price
		s.run.NodeTypes[catalog.Kind(labels)]++
	}
	return nil
}

// down takes the work back and measures until everything is gone.
func (s *stage) down(ctx context.Context, gone func(context.Context) error) error {
	begin := time.Now()
	if err := s.client.TakeBack(ctx); err != nil {
		return err
	}
	if err := within(ctx, workPatience, gone); err != nil {
		return err
	}
	s.run.DownSeconds = time.Since(begin).Seconds()
	return nil
}

// logFile is where the controller of this run writes.
func (s *stage) logFile(folder string) (string, error) {
	if s.options.keepLogs != "" {
		folder = s.options.keepLogs
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", fmt.Errorf("-keep-logs: %w", err)
		}
	}
	return filepath.Join(folder, fmt.Sprintf("%s-%d.log", s.run.Contestant, s.run.Number)), nil
}

// tell shows a finished run to the one who waits.
func (s *stage) tell() {
	fmt.Fprintf(s.messages, "bench: %s %d: up %.2f s, down %.2f s, %d nodes, $%.3f/h, %.1f MB, %.2f s CPU (load %.1f)\n",
		s.run.Contestant, s.run.Number, s.run.UpSeconds, s.run.DownSeconds, s.run.Nodes, s.run.Cost, s.run.RSSMegabytes, s.run.CPUSeconds, s.run.Load)
	for _, step := range cluster.Steps() {
		if span, ok := s.run.Stages[step]; ok {
			fmt.Fprintf(s.messages, "bench:   %-18s %5d  first %6.2f s  last %6.2f s\n", step, span.Count, span.First, span.Last)
		}
	}
}

// within bounds a wait.
func within(ctx context.Context, patience time.Duration, wait func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("given up after %s", patience))
	defer cancel()
	return wait(ctx)
}
