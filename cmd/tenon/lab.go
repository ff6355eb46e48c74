//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/tenon-sh/tenon/cloudprovider/aws/awscloud"
	"github.com/tenon-sh/tenon/internal/lab"
	"github.com/tenon-sh/tenon/internal/lab/labaws"
	"github.com/tenon-sh/tenon/internal/lab/labpods"
)

// newLabCommand makes "tenon lab". Its subcommands find or build the lab's own
// executable and hand over to it.
func newLabCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Run a real Kubernetes control plane on this machine, with simulated kubelets",
		Long: `Run etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok on
this machine, and a simulated AWS account if it is asked for (up --cloud aws).
The executable is built from source the first time.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().String("dir", ".lab", "directory of the lab: state, logs and DIR/kubeconfig")
	cmd.AddCommand(newLabUp(), newLabSystem(), newLabDown(), newLabStatus(), newLabRestart(), newLabKubectl(),
		newLabBuild())
	return cmd
}

func newLabUp() *cobra.Command {
	var detach bool
	var cloud labCloud
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the lab and keep it until Ctrl-C",
		Long: `Start the lab and keep it until Ctrl-C. It listens on 127.0.0.1 only, on free
ports; two labs run side by side in two directories. A directory that held a
lab before keeps its objects.

With --cloud aws a simulated AWS account runs beside it: EC2, SSM, IAM, EKS, SQS,
STS, Pricing, with a network of three zones tagged karpenter.sh/discovery=CLUSTER,
the role KarpenterNodeRole-CLUSTER, images of every family and a queue. Its
instances join the lab as nodes. DIR/aws.env sets what a controller needs:

  tenon lab up --cloud aws --detach
  . .lab/aws.env
  tenon lab kubectl -- apply -f charts/karpenter-crd/templates
  tenon controller --bind-address 127.0.0.1 --disable-leader-election

The account is gone when the lab ends, and its instances with it. See also:
tenon ec2sim.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cloud.validate(cmd.Flags()); err != nil {
				return err
			}
			if cloud.name == awscloud.Name {
				return labUpAWS(cmd, cloud, detach)
			}
			if detach {
				return execLab(cmd, "--detach")
			}
			return execLab(cmd)
		},
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "return when the lab is ready and leave it running")
	cloud.register(cmd.Flags())
	return cmd
}

func newLabDown() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the lab and wait until it is gone",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := cmd.Flags().GetString("dir")
			if err != nil {
				return err
			}
			if err := labpods.Down(cmd.Context(), dir); err != nil {
				return err
			}
			if err := labaws.Down(cmd.Context(), dir); err != nil {
				return err
			}
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := cmd.Flags().GetString("dir")
			if err != nil {
				return err
			}
			if account, ok, err := labaws.Running(dir); err == nil && ok {
				fmt.Fprintf(cmd.OutOrStdout(), "a simulated AWS account (pid %d) answers at %s\n\n", account.PID,
					account.URL)
			}
			if pid, err := labpods.Running(dir); err == nil && pid != 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "the pods of the system nodes run (pid %d)\n\n", pid)
			}
			return execLab(cmd)
		},
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
	// Nobody wants to wait for a build to be told that there is nothing.
	switch _, err := os.Stat(dir); {
	case !errors.Is(err, fs.ErrNotExist) || cmd.Name() == "up":
	case cmd.Name() == "down":
		_, err := fmt.Fprintf(cmd.ErrOrStderr(), "lab: none runs in %s\n", dir)
		return err
	default:
		return fmt.Errorf("no lab runs in %s: start one with: tenon lab up --dir %s", dir, dir)
	}
	ctx, stop := labSignals(cmd.Context())
	defer stop()
	return lab.Exec(ctx, append([]string{cmd.Name(), "--dir=" + dir}, args...), cmd.ErrOrStderr())
}

// labSignals lets Ctrl-C end a build, which leaves nothing half done.
func labSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}
