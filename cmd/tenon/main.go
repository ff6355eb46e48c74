// Command tenon is a just-in-time node autoscaler for Kubernetes, and the lab to try it in.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // budgets may name time zones, and containers have no list of them

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
		stop()
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "tenon",
		Short:         "Just-in-time nodes for Kubernetes",
		Long:          "Tenon watches for pods that can't be placed, launches the cheapest nodes that fit them, and removes nodes that nobody needs.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	}
	root.AddCommand(newControllerCommand(), newLabCommand(), newDemoCommand(), newEC2SimCommand(), newReplayCommand(), newConvertCommand())
	return root
}
