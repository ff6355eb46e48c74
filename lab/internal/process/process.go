// Package process starts, watches and ends the parts of a lab, which are all
// this same executable under another first argument. It knows nothing of what
// the parts do. It touches processes, and log files whose paths it is given.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Spec says how to run a part.
type Spec struct {
	Name string
	Args []string
	Env  []string
	Log  string
}

// Process is a running or ended part.
type Process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// Runner starts parts that end when it does.
type Runner struct {
	binary   string
	lifeline *Lifeline
}

// NewRunner makes a runner for the executable binary.
func NewRunner(binary string) (*Runner, error) {
	lifeline, err := NewLifeline()
	if err != nil {
		return nil, err
	}
	return &Runner{binary: binary, lifeline: lifeline}, nil
}

// Close ends the lifeline: parts that still run end too.
func (r *Runner) Close() error { return r.lifeline.Close() }

// Start runs a part.
func (r *Runner) Start(spec Spec) (*Process, error) {
	log, err := OpenLog(spec.Log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(r.binary, append([]string{spec.Name}, spec.Args...)...)
	cmd.Env = append(append(os.Environ(), spec.Env...), lifelineVariable+"=stdin")
	cmd.Stdin = r.lifeline.end
	cmd.Stdout = log
	cmd.Stderr = log
	// A group of its own: Ctrl-C reaches the supervisor alone, which then ends
	// the parts in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{name: spec.Name, log: spec.Log, cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the outcome is in cmd.ProcessState
		close(p.done)
	}()
	return p, nil
}

// OpenLog starts a log file anew: a log tells of one run.
func OpenLog(path string) (*os.File, error) {
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return log, nil
}

// Name returns the part's name.
func (p *Process) Name() string { return p.name }

// PID returns the part's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the part has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Failure describes why an ended part ended.
func (p *Process) Failure() error {
	failure := &Failure{Part: p.name, State: p.cmd.ProcessState.String(), Log: p.log}
	// A part that somebody killed had no time to write down why.
	if p.cmd.ProcessState.Exited() {
		failure.Cause = Cause(p.log)
	}
	return failure
}

// Stop asks all parts to end, and kills those that have not within grace.
func Stop(grace time.Duration, parts ...*Process) {
	for _, p := range parts {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	expired := false
	for _, p := range parts {
		if !expired {
			select {
			case <-p.done:
			case <-patience.C:
				expired = true
			}
		}
		if expired {
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	}
}
