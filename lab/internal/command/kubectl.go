package command

import (
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

func newKubectl() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kubectl -- ARGS...",
		Short:   "Run kubectl against the lab",
		Example: "  tenon lab kubectl -- get nodes",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := dirOf(cmd)
			if err != nil {
				return err
			}
			pid, err := dir.Holder()
			if err != nil {
				return err
			}
			if pid == 0 {
				return fmt.Errorf("no lab runs in %s: start one with: tenon lab up --dir %s", dir.Path(), dir.Path())
			}
			binary, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this executable: %w", err)
			}
			environment := append(os.Environ(), "KUBECONFIG="+dir.Kubeconfig())
			// kubectl takes this process's place: its input, terminal and exit
			// code are the user's own.
			if err := syscall.Exec(binary, append([]string{kubectlName}, args...), environment); err != nil {
				return fmt.Errorf("run kubectl: %w", err)
			}
			return nil
		},
	}
	// What follows kubectl's first word is kubectl's.
	cmd.Flags().SetInterspersed(false)
	return cmd
}
