package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/tenon-sh/tenon/internal/lab"
)

// newLabCommand makes "tenon lab". Its subcommands find or build the lab's own
// executable and hand over to it.
func newLabCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Run a real Kubernetes control plane on this machine, with simulated kubelets",
		Long: `Run etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok on
this machine. The executable is built from source the first time.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().String("dir", ".lab", "directory of the lab: state, logs and DIR/kubeconfig")
	cmd.AddCommand(newLabUp(), newLabDown(), newLabStatus(), newLabRestart(), newLabKubectl(), newLabBuild())
	return cmd
}

func newLabUp() *cobra.Command {
	var detach bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the lab and keep it until Ctrl-C",
		Long: `Start the lab and keep it until Ctrl-C. It listens on 127.0.0.1 only, on free
ports; two labs run side by side in two directories. A directory that held a
lab before keeps its objects.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if detach {
				return execLab(cmd, "--detach")
			}
			return execLab(cmd)
		},
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "return when the lab is ready and leave it running")
	return cmd
}

func newLabDown() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the lab and wait until it is gone",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if remove {
				return execLab(cmd, "--delete")
			}
			return execLab(cmd)
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the directory of the lab too, with all its objects and logs")
	return cmd
}

func newLabStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the parts of the lab; fails if it does not run",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return execLab(cmd) },
	}
}

func newLabRestart() *cobra.Command {
	return &cobra.Command{
		Use:     "restart PART...",
		Short:   "Kill parts of the running lab and wait until they are back",
		Example: "  tenon lab restart etcd kube-apiserver",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return execLab(cmd, args...) },
	}
}

func newLabKubectl() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kubectl -- ARGS...",
		Short:   "Run kubectl against the lab",
		Example: "  tenon lab kubectl -- get nodes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return execLab(cmd, append([]string{"--"}, args...)...)
		},
	}
	// What follows kubectl's first word is kubectl's.
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func newLabBuild() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the lab's executable now and print its path",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := labSignals(cmd.Context())
			defer stop()
			path, err := lab.Binary(ctx, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
}

// execLab becomes the lab's executable under the same subcommand.
func execLab(cmd *cobra.Command, args ...string) error {
	dir, err := cmd.Flags().GetString("dir")
	if err != nil {
		return err
	}
	ctx, stop := labSignals(cmd.Context())
	defer stop()
	return lab.Exec(ctx, append([]string{cmd.Name(), "--dir=" + dir}, args...), cmd.ErrOrStderr())
}

// labSignals lets Ctrl-C end a build, which leaves nothing half done.
func labSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}
