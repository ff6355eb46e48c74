// Package controlplane composes a Kubernetes control plane out of parts: which
// processes, with which flags, in which order, and when it is ready. It
// touches the lab's directory, loopback ports and the processes it starts.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/lab/internal/labdir"
	"github.com/tenon-sh/tenon/lab/internal/process"
)

const (
	startPatience = 2 * time.Minute
	startTries    = 3
	// The API server would wait a minute for its watchers to leave; nothing it
	// has accepted is lost without that, because etcd ends after it.
	grace     = 700 * time.Millisecond
	etcdGrace = 3 * time.Second
)

// ControlPlane is a running lab.
type ControlPlane struct {
	dir     labdir.Dir
	runner  *process.Runner
	plan    plan
	started time.Time

	// mu guards what follows: parts may be started again while others end.
	mu sync.Mutex
	// running is in the order of starting, etcd first.
	running  []running
	stopping bool
	failure  chan error
}

type running struct {
	part    part
	process *process.Process
}

// Start brings a control plane up in dir, whose lock the caller holds, and
// returns when it is ready for work. A failed start leaves no process.
func Start(ctx context.Context, dir labdir.Dir, binary string, progress func(string)) (*ControlPlane, error) {
	var err error
	for range startTries {
		var c *ControlPlane
		c, err = startOnce(ctx, dir, binary, progress)
		if err == nil {
			return c, nil
		}
		var failure *process.Failure
		if !errors.As(err, &failure) || !failure.PortTaken() {
			break
		}
		progress("a port was taken meanwhile: trying others")
	}
	return nil, explain(dir, err)
}

// explain names a full disk, which the parts report in many ways.
func explain(dir labdir.Dir, err error) error {
	var failure *process.Failure
	if errors.As(err, &failure) && (failure.FullDisk() || dir.IsFull()) {
		return dir.FullDisk()
	}
	return err
}

func startOnce(ctx context.Context, dir labdir.Dir, binary string, progress func(string)) (*ControlPlane, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	p, err := freePorts()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{dir: dir, plan: newPlan(dir, p), started: time.Now(), failure: make(chan error, 8)}
	if err := writeCredentials(dir, c.plan.apiServer.url()); err != nil {
		return nil, err
	}
	c.runner, err = process.NewRunner(binary)
	if err != nil {
		return nil, err
	}
	if err := c.bringUp(ctx, progress); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// bringUp starts the parts in the order of their needs, each as early as it
// can use what came before.
func (c *ControlPlane) bringUp(ctx context.Context, progress func(string)) error {
	probe, err := NewProbe(c.dir)
	if err != nil {
		return err
	}
	progress("starting etcd")
	if _, err := c.startAndAwait(ctx, probe, c.plan.etcd, c.plan.etcd.health); err != nil {
		return err
	}
	progress("starting kube-apiserver")
	apiServer, err := c.startAndAwait(ctx, probe, c.plan.apiServer, "/livez/ping")
	if err != nil {
		return err
	}
	progress("starting kube-scheduler, kwok and kube-controller-manager")
	clients := make([]*process.Process, len(c.plan.clients))
	for i, part := range c.plan.clients {
		if clients[i], err = c.start(part); err != nil {
			return err
		}
	}
	// The controller manager looks at the API server's health once a second:
	// one that starts too early loses that second.
	if err := c.await(ctx, probe, apiServer, c.plan.apiServer.url()+"/healthz"); err != nil {
		return err
	}
	manager, err := c.startAndAwait(ctx, probe, c.plan.controllerManager, c.plan.controllerManager.health)
	if err != nil {
		return err
	}
	for i, part := range c.plan.clients {
		if err := c.await(ctx, probe, clients[i], part.url()+part.health); err != nil {
			return err
		}
	}
	if err := c.await(ctx, probe, apiServer, c.plan.apiServer.url()+c.plan.apiServer.health); err != nil {
		return err
	}
	// Pods are refused until their namespace has a service account, which the
	// controller manager makes a moment after it starts.
	account := c.plan.apiServer.url() + "/api/v1/namespaces/default/serviceaccounts/default"
	if err := c.await(ctx, probe, manager, account); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saveRecord()
}

func (c *ControlPlane) startAndAwait(ctx context.Context, probe *Probe, p part, path string) (*process.Process, error) {
	started, err := c.start(p)
	if err != nil {
		return nil, err
	}
	return started, c.await(ctx, probe, started, p.url()+path)
}

func (c *ControlPlane) await(ctx context.Context, probe *Probe, p *process.Process, url string) error {
	return until(ctx, p, func(ctx context.Context) error { return probe.Well(ctx, url) })
}

func (c *ControlPlane) start(p part) (*process.Process, error) {
	if err := c.dir.DropRestarts(p.name); err != nil {
		return nil, err
	}
	started, err := c.run(p)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = append(c.running, running{part: p, process: started})
	go c.guard(p, started)
	return started, nil
}

func (c *ControlPlane) run(p part) (*process.Process, error) {
	return c.runner.Start(process.Spec{Name: p.name, Args: p.args, Log: c.dir.Log(p.name)})
}

// Failure delivers the error of a part that ended by itself.
func (c *ControlPlane) Failure() <-chan error { return c.failure }

// Stop ends every part, etcd last so that nothing writes into a void.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	var others []*process.Process
	for _, r := range c.running[min(1, len(c.running)):] {
		others = append(others, r.process)
	}
	process.Stop(grace, others...)
	if len(c.running) > 0 {
		process.Stop(etcdGrace, c.running[0].process)
	}
	return errors.Join(c.runner.Close(), c.dir.DropRecord())
}

// saveRecord writes down what runs, for status and for people who look. The caller holds mu.
func (c *ControlPlane) saveRecord() error {
	record := labdir.Record{Supervisor: os.Getpid(), Started: c.started}
	for _, r := range c.running {
		record.Parts = append(record.Parts, labdir.Part{
			Name: r.part.name, PID: r.process.PID(), Address: r.part.url(), Health: r.part.health})
	}
	if err := c.dir.SaveRecord(record); err != nil {
		return fmt.Errorf("record what runs: %w", err)
	}
	return nil
}
