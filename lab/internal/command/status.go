package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenon-sh/tenon/lab/internal/controlplane"
	"github.com/tenon-sh/tenon/lab/internal/labdir"
)

func newStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the parts of the lab; fails if it does not run",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := dirOf(cmd)
			if err != nil {
				return err
			}
			return status(cmd.Context(), dir, cmd.OutOrStdout())
		},
	}
}

func status(ctx context.Context, dir labdir.Dir, out io.Writer) error {
	record, err := runningRecord(dir)
	if err != nil {
		return err
	}
	probe, err := controlplane.NewProbe(dir)
	if err != nil {
		return err
	}
	return printStatus(ctx, dir, record, probe, out)
}

// runningRecord reads what runs in the lab, and fails if it does not run.
func runningRecord(dir labdir.Dir) (labdir.Record, error) {
	pid, err := dir.Holder()
	if err != nil {
		return labdir.Record{}, err
	}
	if pid == 0 {
		return labdir.Record{}, fmt.Errorf("no lab runs in %s: start one with: tenon lab up --dir %s", dir.Path(),
			dir.Path())
	}
	record, ok, err := dir.LoadRecord()
	if err != nil {
		return labdir.Record{}, err
	}
	if !ok || record.Supervisor != pid {
		return labdir.Record{}, fmt.Errorf("the lab in %s (pid %d) is starting or ending: ask again", dir.Path(), pid)
	}
	return record, nil
}

func printStatus(ctx context.Context, dir labdir.Dir, record labdir.Record, probe *controlplane.Probe,
	out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tPID\tREADY\tADDRESS\tMEMORY")
	total, sick := memory(record.Supervisor), 0
	fmt.Fprintf(table, "supervisor\t%d\tyes\t-\t%s\n", record.Supervisor, megabytes(total))
	for _, part := range record.Parts {
		ready := "yes"
		if err := probe.Well(ctx, part.Address+part.Health); err != nil {
			ready = "no"
			sick++
		}
		used := memory(part.PID)
		total += used
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", part.Name, part.PID, ready, part.Address, megabytes(used))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	fmt.Fprintf(out, "\nup for %s, %s in all; KUBECONFIG=%s\n",
		time.Since(record.Started).Round(time.Second), megabytes(total), dir.Kubeconfig())
	if sick > 0 {
		return fmt.Errorf("some parts are not well: see the logs in %s", dir.Path("logs"))
	}
	return nil
}

// memory returns what a process costs in bytes, its share of memory that
// several use counted in part: the parts are one executable. It returns 0 where
// the system has no /proc to tell.
func memory(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "Pss:" {
			continue
		}
		kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0
		}
		return kilobytes << 10
	}
	return 0
}

func megabytes(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%d MB", bytes>>20)
}
