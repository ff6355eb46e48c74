// Command tenon is a just-in-time node autoscaler for Kubernetes, and the lab to try it in. In a cluster runs
// cmd/controller, which is its command "controller" alone.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/cloudprovider/aws/awscloud"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/kwokcloud"
	"github.com/tenon-sh/tenon/internal/version"
	"github.com/tenon-sh/tenon/operator"
)

func main() {
	root, controller := newRootCommand()
	root.SetArgs(operator.Arguments(controller, os.Args[1:]))
	operator.Execute(root)
}

func newControllerCommand() *cobra.Command {
	return operator.NewCommand(awscloud.New(), kwokcloud.New())
}

func newRootCommand() (root, controller *cobra.Command) {
	root = &cobra.Command{
		Use:   "tenon",
		Short: "Just-in-time nodes for Kubernetes",
		Long: "Tenon watches for pods that can't be placed, launches the cheapest nodes that fit them, and " +
			"removes nodes that nobody needs.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.Name(),
	}
	controller = newControllerCommand()
	says := version.NewCommand()
	says.Example = "  tenon version -o json"
	root.AddCommand(controller, newReplayCommand(), newConvertCommand(), says)
	root.AddCommand(newLabCommands()...)
	return root, controller
}
