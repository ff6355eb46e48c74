//go:build !windows && !nolab

package main

import "github.com/spf13/cobra"

// newLabCommands makes the commands that try Tenon out on one's own machine. An image of the controller is built with the
// tag nolab: it has no use for a simulated cloud. Windows has none of them, since the lab's processes need a Unix.
func newLabCommands() []*cobra.Command {
	return []*cobra.Command{newLabCommand(), newDemoCommand(), newEC2SimCommand()}
}
