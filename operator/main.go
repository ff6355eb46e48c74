package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // budgets may name time zones, and containers have no list of them

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/internal/version"
)

// Main is all of a program that runs the controller on one of the clouds. Without --cloud-provider it is the first that
// its own settings choose, and the last if none is chosen.
//
// The program takes the controller's flags, with the command "controller" before them or without, and has the command
// "version".
func Main(clouds ...Cloud) {
	root, controller := newProgram(filepath.Base(os.Args[0]), clouds...)
	root.SetArgs(alone(controller, os.Args[1:]))
	Execute(root)
}

// alone is Arguments for a program that is the controller everywhere, not only in a pod.
func alone(controller *cobra.Command, given []string) []string {
	if len(given) == 0 || isFlag(controller, given[0]) {
		given = append([]string{controller.Name()}, given...)
	}
	return Arguments(controller, given)
}

// newProgram makes the program's commands.
func newProgram(name string, clouds ...Cloud) (root, controller *cobra.Command) {
	controller = NewCommand(clouds...)
	root = &cobra.Command{
		Use: name, Short: controller.Short, Long: "Run the autoscaler. Without a command the flags are those of the " +
			"command controller.",
		SilenceErrors: true, SilenceUsage: true, Version: version.Read().String(),
	}
	root.AddCommand(controller, version.NewCommand())
	return root, controller
}

// Execute runs a command until it ends or the process is told to end, and ends the process if the command fails.
func Execute(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, whatever it is at
	if err := root.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
		stop()
		os.Exit(1)
	}
}

// Arguments are what a program's root command is given, from what the program was given. In a pod a program without a
// command is the controller, as Karpenter's is, so that its Deployment fits, with flags and without. Karpenter takes
// one dash for two.
func Arguments(controller *cobra.Command, given []string) []string {
	_, inPod := os.LookupEnv("KUBERNETES_SERVICE_HOST")
	if inPod && (len(given) == 0 || isFlag(controller, given[0])) {
		given = append([]string{controller.Name()}, given...)
	}
	if len(given) == 0 || given[0] != controller.Name() {
		return given
	}
	out := slices.Clone(given)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		if isFlag(controller, arg) {
			out[i] = "--" + strings.TrimLeft(arg, "-")
		}
	}
	return out
}

// isFlag tells whether an argument gives a flag of the controller, with one dash or two.
func isFlag(controller *cobra.Command, arg string) bool {
	name, dashes := arg, 0
	for ; strings.HasPrefix(name, "-"); dashes++ {
		name = name[1:]
	}
	name, _, _ = strings.Cut(name, "=")
	return (dashes == 1 || dashes == 2) && controller.Flags().Lookup(name) != nil
}
