// Command provider is the controller for a cloud of one's own: here a fleet of pretend machines. docs/tasks/provider.md
// walks through it.
package main

import (
	"example.com/provider/fleet"
	"github.com/tenon-sh/tenon/operator"
)

func main() { operator.Main(fleet.New()) }
