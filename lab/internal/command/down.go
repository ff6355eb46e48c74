package command

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenon-sh/tenon/lab/internal/labdir"
)

const (
	downPatience = 30 * time.Second
	exitPatience = 3 * time.Second
	downPoll     = 20 * time.Millisecond
)

func newDown() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the lab and wait until it is gone",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := dirOf(cmd)
			if err != nil {
				return err
			}
			pid, err := end(dir)
			if err != nil {
				return err
			}
			if pid == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "lab: none runs in %s\n", dir.Path())
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "lab: ended (pid %d)\n", pid)
			}
			if !remove {
				return nil
			}
			return deleteLab(dir)
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the directory of the lab too, with all its objects and logs")
	return cmd
}

// end ends the lab in dir and returns the pid of its supervisor, 0 if none ran.
func end(dir labdir.Dir) (int, error) {
	pid, err := dir.Holder()
	if err != nil || pid == 0 {
		return 0, err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return 0, fmt.Errorf("end the supervisor (pid %d): %w", pid, err)
	}
	deadline := time.Now().Add(downPatience)
	for time.Now().Before(deadline) {
		holder, err := dir.Holder()
		if err != nil {
			return 0, err
		}
		if holder != pid {
			awaitExit(pid)
			return pid, nil
		}
		time.Sleep(downPoll)
	}
	return 0, fmt.Errorf("the supervisor (pid %d) did not end in %s: see %s", pid, downPatience, dir.Log("supervisor"))
}

// awaitExit waits for a process that has let go of its lock, and so of
// everything else, to be gone. A moment is enough; longer than that only a
// process stays whose parent never asks after it.
func awaitExit(pid int) {
	for deadline := time.Now().Add(exitPatience); time.Now().Before(deadline); time.Sleep(downPoll) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
	}
}

// deleteLab removes a lab that nobody runs, under its lock.
func deleteLab(dir labdir.Dir) error {
	if _, err := os.Stat(dir.Path()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if !dir.IsLab() {
		return fmt.Errorf("--dir %s is not a lab: nothing deleted", dir.Path())
	}
	lock, err := dir.Lock()
	if err != nil {
		return err
	}
	if err := dir.Delete(); err != nil {
		return err
	}
	return lock.Release()
}
