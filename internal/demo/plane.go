package demo

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/tenon-sh/tenon/internal/lab"
)

// plane is a running lab.
type plane interface {
	kubeconfig() string
	done() <-chan struct{} // closed when it has ended; nil if that can't be told
	end() error
}

// startPlane starts a lab: one that ends with this process, or one that stays.
func startPlane(ctx context.Context, d *directory, stay bool, out io.Writer) (plane, error) {
	ctx, cancel := context.WithTimeout(ctx, labPatience)
	defer cancel()
	if stay {
		return startDetached(ctx, d.lab(), out)
	}
	running, err := lab.Start(ctx, d.lab(), out)
	if err != nil {
		return nil, err
	}
	return attached{running}, nil
}

type attached struct{ lab *lab.Lab }

func (a attached) kubeconfig() string    { return a.lab.Kubeconfig() }
func (a attached) done() <-chan struct{} { return a.lab.Done() }
func (a attached) end() error            { return a.lab.Close() }

// detached is a lab that outlives this process.
type detached struct {
	dir string
	out io.Writer
}

func startDetached(ctx context.Context, dir string, out io.Writer) (plane, error) {
	binary, err := lab.Binary(ctx, out)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "up", "--dir="+dir, "--detach")
	cmd.Stdout, cmd.Stderr = out, out
	// Ctrl-C is this process's to handle; it is passed on as an interrupt, upon which the lab's own starter cleans up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = endPatience
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("starting the lab: %w", err)
	}
	return detached{dir: dir, out: out}, nil
}

func (d detached) kubeconfig() string    { return filepath.Join(d.dir, "kubeconfig") }
func (d detached) done() <-chan struct{} { return nil }

func (d detached) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	return labDown(ctx, d.dir, d.out)
}

// labDown ends the lab in dir, if one runs there.
func labDown(ctx context.Context, dir string, out io.Writer) error {
	binary, err := lab.Binary(ctx, out)
	if err != nil {
		return err
	}
	if text, err := exec.CommandContext(ctx, binary, "down", "--dir="+dir).CombinedOutput(); err != nil {
		return fmt.Errorf("ending the lab in %s: %w: %s", dir, err, text)
	}
	return nil
}
