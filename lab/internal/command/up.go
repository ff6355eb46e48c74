package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenon-sh/tenon/lab/internal/controlplane"
	"github.com/tenon-sh/tenon/lab/internal/labdir"
)

// How another program runs a supervisor. These are flags and not variables, so
// that they show in the process list.
const (
	reportFlag    = "report-fd"
	stdinFlag     = "until-stdin-closes"
	temporaryFlag = "delete-at-end"
)

func newUp() *cobra.Command {
	var detach bool
	var tie tie
	var reportFD uint
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the lab and keep it until Ctrl-C",
		Long: `Start etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.
The lab listens on 127.0.0.1 only, on free ports; two labs run side by side.
A directory that held a lab before keeps its objects.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := dirOf(cmd)
			if err != nil {
				return err
			}
			if detach {
				return runDetached(dir, cmd.OutOrStdout())
			}
			report := reporter{out: cmd.OutOrStdout()}
			if reportFD != 0 {
				report.file = os.NewFile(uintptr(reportFD), "report")
			}
			return report.end(supervise(cmd.Context(), dir, report, tie))
		},
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "return when the lab is ready and leave it running")
	cmd.Flags().UintVar(&reportFD, reportFlag, 0, "write progress to this file descriptor")
	cmd.Flags().BoolVar(&tie.untilStdinCloses, stdinFlag, false, "end the lab when standard input closes")
	cmd.Flags().BoolVar(&tie.deleteAtEnd, temporaryFlag, false, "delete the directory when the lab ends")
	for _, hidden := range []string{reportFlag, stdinFlag, temporaryFlag} {
		_ = cmd.Flags().MarkHidden(hidden)
	}
	return cmd
}

// tie binds a lab to the program that started it. The supervisor sees to it,
// because that program may be killed.
type tie struct {
	untilStdinCloses bool
	deleteAtEnd      bool
}

// supervise runs a lab from start to end.
func supervise(ctx context.Context, dir labdir.Dir, report reporter, tie tie) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if tie.untilStdinCloses {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	if err := dir.Prepare(); err != nil {
		return err
	}
	lock, err := dir.Lock()
	if err != nil {
		return err
	}
	err = superviseLocked(ctx, dir, report)
	if tie.deleteAtEnd {
		err = errors.Join(err, dir.Delete())
	}
	return errors.Join(err, lock.Release())
}

func superviseLocked(ctx context.Context, dir labdir.Dir, report reporter) error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this executable: %w", err)
	}
	begin := time.Now()
	plane, err := controlplane.Start(ctx, dir, binary, report.progress)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted: the lab was not started")
		}
		return err
	}
	report.ready(dir, time.Since(begin))
	select {
	case <-ctx.Done():
		report.progress("ending the lab")
		return plane.Stop()
	case err := <-plane.Failure():
		return errors.Join(fmt.Errorf("the lab ends: %w", err), plane.Stop())
	}
}
