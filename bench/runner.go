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
	"github.com/tenon-sh/tenon/bench/internal/report"
)

// startPatience bounds the start of a controller and of ready-made nodes.
const startPatience = 3 * time.Minute

// runner carries what every run needs.
type runner struct {
	options     options
	tenon       string
	prices      *catalog.Catalog
	messages    io.Writer
	contestants []runs
}

// runs is somebody who takes part: a contestant, or none for the base.
type runs struct{ contestant *contestant.Contestant }

func (r runs) name() string {
	if r.contestant == nil {
		return report.Base
	}
	return r.contestant.Name
}

// one does a session once on a fresh lab, and ends the lab.
func (r *runner) one(ctx context.Context, who runs, s session, scenarios []*report.Scenario) (err error) {
	folder, err := os.MkdirTemp("", "tenon-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the lab: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	fmt.Fprintf(r.messages, "bench: %s, %s: starting a lab\n", who.name(), s.name())
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
	st := &stage{runner: r, name: who.name(), session: s, client: client, scenarios: scenarios}
	if who.contestant == nil {
		return st.base(ctx)
	}
	return st.contest(ctx, *who.contestant, lab.Kubeconfig(), folder)
}

// logFile is where the controller of this run writes.
func (r *runner) logFile(folder, name string) (string, error) {
	if r.options.keepLogs != "" {
		folder = r.options.keepLogs
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", fmt.Errorf("-keep-logs: %w", err)
		}
	}
	return filepath.Join(folder, name+".log"), nil
}

// within bounds a wait.
func within(ctx context.Context, patience time.Duration, wait func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("given up after %s", patience))
	defer cancel()
	return wait(ctx)
}
