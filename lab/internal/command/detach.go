package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/tenon-sh/tenon/lab/internal/labdir"
	"github.com/tenon-sh/tenon/lab/internal/process"
)

// runDetached starts a supervisor in a session of its own and waits until it
// is ready or has failed.
func runDetached(dir labdir.Dir, out io.Writer) error {
	if err := dir.Prepare(); err != nil {
		return err
	}
	pid, err := dir.Holder()
	if err != nil {
		return err
	}
	if pid != 0 {
		return &labdir.TakenError{Dir: dir.Path(), PID: pid}
	}
	report, cmd, err := startSupervisor(dir)
	if err != nil {
		return err
	}
	defer func() { _ = report.Close() }()

	// Ctrl-C while waiting means that the user does not want the lab: the
	// supervisor is asked to end, and its report says when it has.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	go func() {
		if _, ok := <-interrupts; ok {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}()
	if err := follow(report, out); err != nil {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		return errors.Join(err, ignoreExit(cmd.Wait()))
	}
	fmt.Fprintf(out, "lab: runs in the background (pid %d); end it with: tenon lab down --dir %s\n", cmd.Process.Pid,
		dir.Path())
	return cmd.Process.Release()
}

// ignoreExit drops the exit status of a supervisor that has already said why.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

func startSupervisor(dir labdir.Dir) (*os.File, *exec.Cmd, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this executable: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe for the report: %w", err)
	}
	defer func() { _ = write.Close() }()
	log, err := process.OpenLog(dir.Log("supervisor"))
	if err != nil {
		return nil, nil, errors.Join(err, read.Close())
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(binary, "up", "--dir="+dir.Path(), "--"+reportFlag+"=3")
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the supervisor: %w", err), read.Close())
	}
	return read, cmd, nil
}
