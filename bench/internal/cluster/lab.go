// Package cluster starts a lab for one run, puts objects into it and watches what becomes of them. It touches the lab
// that it starts, through the tenon command and the API server on the loopback interface.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// upPatience covers the building of the lab's executable, the first time.
	upPatience   = 45 * time.Minute
	downPatience = time.Minute
)

// ErrStillUp says that a lab could not be ended.
var ErrStillUp = errors.New("the lab may still run")

// Lab is a fresh control plane with simulated kubelets.
type Lab struct {
	tenon, dir string
}

// Up starts a lab in a new directory. After an error nothing is left.
func Up(ctx context.Context, tenon, dir string) (*Lab, error) {
	l := &Lab{tenon: tenon, dir: dir}
	ctx, cancel := context.WithTimeoutCause(ctx, upPatience, fmt.Errorf("not up after %s", upPatience))
	defer cancel()
	if err := l.run(ctx, "up", "--detach"); err != nil {
		return nil, errors.Join(fmt.Errorf("start the lab: %w", err), l.Down())
	}
	return l, nil
}

// Down ends the lab and removes its directory. It works after an interrupt too, hence its own bound.
func (l *Lab) Down() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), downPatience, fmt.Errorf("not down after %s",
		downPatience))
	defer cancel()
	if err := l.run(ctx, "down", "--delete"); err != nil {
		return fmt.Errorf("end the lab in %s: %w: %w", l.dir, ErrStillUp, err)
	}
	return nil
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }

func (l *Lab) run(ctx context.Context, command string, args ...string) error {
	cmd := exec.CommandContext(ctx, l.tenon, append([]string{"lab", command, "--dir=" + l.dir}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	// Ctrl-C reaches this program, which asks the command to end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return nil
}

// config makes a configuration for clients and refuses anything that is not on this machine.
func (l *Lab) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the lab's kubeconfig: %w", err)
	}
	address, err := url.Parse(config.Host)
	if err != nil || address.Hostname() != "127.0.0.1" {
		return nil, fmt.Errorf("the lab's kubeconfig points to %s, which is not on this machine", config.Host)
	}
	config.QPS = -1
	return config, nil
}
