// Command tenon-lab is a whole Kubernetes control plane in one executable. With
// the name of a part as its first argument it is that part; otherwise it is
// the supervisor that runs the parts as a lab. Called by the name of a part, as
// through a symbolic link, it is that part too; that is the only way to the
// bare kubectl, because "tenon-lab kubectl" is kubectl against a lab.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tenon-sh/tenon/lab/internal/command"
	"github.com/tenon-sh/tenon/lab/internal/process"
)

func main() {
	if run := choosePart(); run != nil {
		process.FollowLifeline()
		os.Exit(run())
	}
	if err := command.New().ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// choosePart returns the part that the command line asks for, or nil. The parts
// read the command line themselves and must not see the word that chose them.
func choosePart() func() int {
	if run, ok := parts()[filepath.Base(os.Args[0])]; ok {
		return run
	}
	if len(os.Args) < 2 || os.Args[1] == "kubectl" {
		return nil
	}
	run, ok := parts()[os.Args[1]]
	if !ok {
		return nil
	}
	os.Args = os.Args[1:]
	return run
}
