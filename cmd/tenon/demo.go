//go:build !windows

package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/tenon-sh/tenon/cloudprovider/aws/awscloud"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/kwokcloud"
	"github.com/tenon-sh/tenon/internal/demo"
)

func newDemoCommand() *cobra.Command {
	o := demo.Options{}
	var down bool
	cloud := kwokcloud.Name
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on a lab of its own: pods come, nodes come; pods go, nodes go",
		Long: `Start a lab, install the CustomResourceDefinitions, run the controller, apply the files of
examples/kwok, scale deployment inflate, show the nodes that come, delete the deployment and
show the nodes go. Then everything ends and the directory is removed. After a failure the
directory stays, with the logs.

With --cloud aws the nodes are instances of a simulated AWS account, made from the EC2NodeClass
of examples/aws, and AWS takes one of them back in between.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A terminal that is closed ends the demo as Ctrl-C does.
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP)
			defer stop()
			o.Out = cmd.OutOrStdout()
			if cloud != kwokcloud.Name && cloud != awscloud.Name {
				return fmt.Errorf("--cloud: %q is not one of %s, %s", cloud, kwokcloud.Name, awscloud.Name)
			}
			o.AWS = cloud == awscloud.Name
			if down {
				return demo.Down(ctx, o.Dir, o.Out)
			}
			executable, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this executable: %w", err)
			}
			o.Executable = executable
			return demo.Run(ctx, o)
		},
	}
	cmd.Flags().StringVar(&cloud, "cloud", kwokcloud.Name, "kwok: the controller's own simulated cloud; aws: a "+
		"simulated AWS account")
	cmd.Flags().StringVar(&o.Dir, "dir", ".demo", "directory of the demo: its lab and the controller's log")
	cmd.Flags().IntVar(&o.Pods, "pods", 50, fmt.Sprintf("how many pods of 1 CPU, 1 to %d", demo.MaxPods))
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave everything running and say how to use it")
	cmd.Flags().BoolVar(&down, "down", false, "end a demo that was kept and remove its directory")
	cmd.MarkFlagsMutuallyExclusive("keep", "down")
	cmd.AddCommand(newHeldController())
	return cmd
}

// newHeldController is "tenon controller" for the demo: it ends with its standard input, a pipe that the demo holds, so
// that it can't outlive the demo, whatever ends that.
func newHeldController() *cobra.Command {
	cmd := newControllerCommand()
	cmd.Hidden = true
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := untilStdinCloses(cmd.Context())
		defer cancel()
		cmd.SetContext(ctx)
		return run(cmd, args)
	}
	return cmd
}
