package demo

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// controller is the autoscaler as a process of its own: what the demo shows is the real program.
type controller struct {
	cmd *exec.Cmd
	// metrics is where it serves them.
	metrics string
	// ended gets one value when the process has ended.
	ended chan error
}

// controllerGrace is how long the controller may take to end before it is killed.
const controllerGrace = 15 * time.Second

// startController starts it with more variables than this process has.
func startController(o Options, d *directory, kubeconfig string, env []string) (*controller, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(d.controllerLog(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the controller's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	args := []string{"controller", "--kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1",
		"--metrics-port=" + port, "--health-probe-port=0", "--disable-leader-election"}
	if !o.Keep {
		args = append([]string{"demo"}, args...) // the same, but ends with its standard input
	}
	cmd := exec.Command(o.Executable, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, append(os.Environ(), env...)
	if o.Keep {
		// It outlives this process, in a session of its own, and holds the directory's lock from here on.
		cmd.ExtraFiles = []*os.File{d.lock}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	} else {
		// Ctrl-C is this process's to handle. Whatever ends this process closes the pipe and so ends the controller.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if _, err := cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("making a pipe for the controller: %w", err)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	c := &controller{cmd: cmd, metrics: "http://127.0.0.1:" + port + "/metrics", ended: make(chan error, 1)}
	go func() {
		err := cmd.Wait()
		if err == nil {
			err = errors.New("without an error")
		}
		c.ended <- err
	}()
	if o.Keep {
		if err := d.sign(cmd.Process.Pid); err != nil {
			return nil, errors.Join(err, c.end())
		}
	}
	return c, nil
}

// freePort is a port of this machine that nobody listens on, so that several demos run side by side.
func freePort() (string, error) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a port for the controller's metrics: %w", err)
	}
	_, port, err := net.SplitHostPort(probe.Addr().String())
	if err := errors.Join(err, probe.Close()); err != nil {
		return "", fmt.Errorf("finding a port for the controller's metrics: %w", err)
	}
	return port, nil
}

// end asks the controller to end and waits until it has.
func (c *controller) end() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending the controller: %w", err)
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(controllerGrace):
	}
	_ = c.cmd.Process.Kill()
	<-c.ended
	return fmt.Errorf("the controller did not end in %s and was killed", controllerGrace)
}
