//go:build windows

package main

import "github.com/spf13/cobra"

// newLabCommands makes nothing: see with_lab.go.
func newLabCommands() []*cobra.Command { return nil }
