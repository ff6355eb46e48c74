package labaws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tenon-sh/tenon/internal/lab"
)

// labWatch is how often is looked whether the lab is still there.
const labWatch = 500 * time.Millisecond

// Serve runs an account for the lab in dir until the context ends or the lab does. ready is called once it can be used.
func Serve(ctx context.Context, dir string, o Options, ready func(Record)) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("resolving --dir: %w", err)
	}
	if runs, err := lab.Runs(dir); err != nil || !runs {
		return errors.Join(err, fmt.Errorf("no lab runs in %s: start one with: tenon lab up --dir %s", dir, dir))
	}
	h, err := hold(dir)
	if err != nil {
		return err
	}
	err = serveHeld(ctx, h, o, ready)
	return errors.Join(err, h.release())
}

func serveHeld(ctx context.Context, h *held, o Options, ready func(Record)) error {
	o.Kubeconfig = filepath.Join(h.dir, "kubeconfig")
	c, err := Start(o)
	if err != nil {
		return err
	}
	r := Record{PID: os.Getpid(), URL: c.URL, Env: c.Environment()}
	if err := h.write(r, o.Kubeconfig); err != nil {
		return errors.Join(err, c.Close())
	}
	ready(r)
	watch := time.NewTicker(labWatch)
	defer watch.Stop()
	for {
		select {
		case <-ctx.Done():
			return c.Close()
		case err := <-c.served:
			c.served <- err // for Close
			return c.Close()
		case <-watch.C:
			if runs, err := lab.Runs(h.dir); err == nil && !runs {
				return c.Close()
			}
		}
	}
}

// Alone runs an account that belongs to no lab, at a port of 127.0.0.1, until the context ends: for programs that want
// an endpoint and no nodes, such as the provider's conformance test. ready is called once it can be used.
func Alone(ctx context.Context, o Options, port int, ready func(Record)) error {
	described, err := o.account()
	if err != nil {
		return err
	}
	made, at, err := open(described, port)
	if err != nil {
		return err
	}
	c := begin(made, nil, at)
	ready(Record{PID: os.Getpid(), URL: c.URL, Env: c.Environment()})
	select {
	case <-ctx.Done():
	case err := <-c.served:
		c.served <- err // for Close
	}
	return c.Close()
}

// Explain says how to use an account.
func Explain(out io.Writer, dir string, r Record) {
	fmt.Fprintf(out, "aws: a simulated account answers at %s; use it with: . %s\n", r.URL, EnvPath(dir))
}

// downPatience is how long an account may take to end.
const downPatience = 15 * time.Second

// Down ends the account that runs for the lab in dir, if one does, and waits until it is gone.
func Down(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, downPatience)
	defer cancel()
	asked := 0
	for {
		r, ok, err := Running(dir)
		if err != nil || !ok {
			return err
		}
		if r.PID != asked {
			asked = r.PID
			// That the record is locked proves that the number in it still is that process's.
			if err := syscall.Kill(asked, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("ending the simulated account (pid %d): %w", asked, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the simulated account (pid %d) did not end in %s", asked, downPatience)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// awaitPatience is how long an account may take to answer.
const awaitPatience = time.Minute

// Await returns when the account of the lab in dir answers. ended tells that its process has ended.
func Await(ctx context.Context, dir string, ended <-chan error) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, awaitPatience)
	defer cancel()
	for {
		if r, ok, err := Running(dir); err != nil || ok {
			return r, err
		}
		select {
		case err := <-ended:
			return Record{}, fmt.Errorf("the simulated account ended (%w); see %s", err, LogPath(dir))
		case <-ctx.Done():
			return Record{}, fmt.Errorf("the simulated account does not answer; see %s: %w", LogPath(dir),
				context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
