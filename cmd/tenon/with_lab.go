//go:build !windows

package main

import "github.com/spf13/cobra"

// newLabCommands makes the commands that try Tenon out on one's own machine. Windows has none of them, since the lab's
// processes need a Unix.
func newLabCommands() []*cobra.Command {
	return []*cobra.Command{newLabCommand(), newDemoCommand(), newEC2SimCommand()}
}
