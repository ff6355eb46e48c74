package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenon-sh/tenon/lab/internal/controlplane"
	"github.com/tenon-sh/tenon/lab/internal/labdir"
)

const (
	restartPatience = 2 * time.Minute
	restartPoll     = 50 * time.Millisecond
)

func newRestart() *cobra.Command {
	return &cobra.Command{
		Use:   "restart PART...",
		Short: "Kill parts of the running lab and wait until they are back",
		Long: `Kill parts of the running lab, as a crash would, and wait until they are back with the same
ports and data. The parts are those that status shows; several go down together.`,
		Example: "  tenon lab restart etcd kube-apiserver",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := dirOf(cmd)
			if err != nil {
				return err
			}
			return restart(cmd.Context(), dir, args, cmd.OutOrStdout())
		},
	}
}

func restart(ctx context.Context, dir labdir.Dir, names []string, out io.Writer) error {
	record, err := runningRecord(dir)
	if err != nil {
		return err
	}
	probe, err := controlplane.NewProbe(dir)
	if err != nil {
		return err
	}
	old := make(map[string]int)
	for _, name := range names {
		part, err := partOf(record, name)
		if err != nil {
			return err
		}
		old[part.Name] = part.PID
	}
	begin := time.Now()
	for _, name := range names {
		if err := dir.AskRestart(name); err != nil {
			return err
		}
		if err := syscall.Kill(old[name], syscall.SIGKILL); err != nil {
			return fmt.Errorf("end %s (pid %d): %w", name, old[name], err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, restartPatience)
	defer cancel()
	for _, name := range names {
		if err := awaitBack(ctx, dir, probe, name, old[name]); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "lab: %s: back after %.1f s\n", strings.Join(names, ", "), time.Since(begin).Seconds())
	return nil
}

// partOf finds a part in what runs.
func partOf(record labdir.Record, name string) (labdir.Part, error) {
	var known []string
	for _, part := range record.Parts {
		if part.Name == name {
			return part, nil
		}
		known = append(known, part.Name)
	}
	return labdir.Part{}, fmt.Errorf("%q is not a part of the lab: name one of %s", name, strings.Join(known, ", "))
}

// awaitBack waits until a part runs as another process and is well.
func awaitBack(ctx context.Context, dir labdir.Dir, probe *controlplane.Probe, name string, old int) error {
	ticker := time.NewTicker(restartPoll)
	defer ticker.Stop()
	for {
		record, err := runningRecord(dir)
		if err != nil {
			return err
		}
		part, err := partOf(record, name)
		if err != nil {
			return err
		}
		if part.PID != old && probe.Well(ctx, part.Address+part.Health) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not back after %s: see %s", name, restartPatience, dir.Log(name))
		case <-ticker.C:
		}
	}
}
