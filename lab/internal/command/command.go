// Package command is the command line of the lab: up, down, status, restart, kubectl.
// It parses, prints and exits; the work is done by controlplane and labdir.
package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tenon-sh/tenon/lab/internal/labdir"
)

// kubectlName is the name under which this executable is the bare kubectl.
const kubectlName = "kubectl"

// New makes the commands. They are also the subcommands of "tenon lab", so
// messages speak of that name.
func New() *cobra.Command {
	root := &cobra.Command{
		Use:           "tenon-lab",
		Short:         "A real Kubernetes control plane on this machine, with simulated kubelets",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().String("dir", ".lab", "directory of the lab: state, logs and DIR/kubeconfig")
	root.AddCommand(newUp(), newDown(), newStatus(), newRestart(), newKubectl())
	return root
}

func dirOf(cmd *cobra.Command) (labdir.Dir, error) {
	path, err := cmd.Flags().GetString("dir")
	if err != nil {
		return labdir.Dir{}, err
	}
	if path == "" {
		return labdir.Dir{}, fmt.Errorf("--dir is empty: name a directory")
	}
	return labdir.At(path)
}
