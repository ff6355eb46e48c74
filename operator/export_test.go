package operator

import (
	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/internal/loop"
)

// NewCommandWith is NewCommand with a planner of a test's own. The program that people run can't have one.
func NewCommandWith(planner loop.Planner, clouds ...Cloud) *cobra.Command {
	o := newOptions(clouds)
	o.planner = planner
	return controllerCommand(o)
}
