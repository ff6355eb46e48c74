// Command tenon is a just-in-time node autoscaler for Kubernetes, and the lab to try it in.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // budgets may name time zones, and containers have no list of them

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, whatever it is at
	root := newRootCommand()
	root.SetArgs(arguments(os.Args[1:]))
	if err := root.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
		stop()
		os.Exit(1)
	}
}

// arguments is what the root command is given. In a pod the executable without a command is the controller, as
// Karpenter's is, so that its Deployment fits, with flags and without. Elsewhere it says what it can do.
func arguments(given []string) []string {
	_, inPod := os.LookupEnv("KUBERNETES_SERVICE_HOST")
	if inPod && (len(given) == 0 || controllerFlag(given[0]) != "") {
		given = append([]string{"controller"}, given...)
	}
	if len(given) == 0 || given[0] != "controller" {
		return given
	}
	out := slices.Clone(given)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		if controllerFlag(arg) != "" {
			out[i] = "--" + strings.TrimLeft(arg, "-")
		}
	}
	return out
}

// controllerFlag is the flag of the controller that an argument gives, empty if it gives none. Karpenter takes one dash
// for two.
func controllerFlag(arg string) string {
	name, dashes := arg, 0
	for ; strings.HasPrefix(name, "-"); dashes++ {
		name = name[1:]
	}
	name, _, _ = strings.Cut(name, "=")
	if dashes == 0 || dashes > 2 || newControllerCommand().Flags().Lookup(name) == nil {
		return ""
	}
	return name
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
	root.AddCommand(newControllerCommand(), newReplayCommand(), newConvertCommand(), newVersionCommand())
	root.AddCommand(newLabCommands()...)
	return root
}
