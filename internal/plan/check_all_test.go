package plan

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// TestEveryCommandIsChecked: a command that Check doesn't know would be dropped from every plan.
func TestEveryCommandIsChecked(t *testing.T) {
	s := (&cluster.Snapshot{}).Seal()
	for _, c := range command.All() {
		p := Check(Plan{Commands: []command.Command{c}}, s) // panics if it doesn't know the command
		switch c.(type) {
		case command.Release, command.Terminate: // ends of what is gone already
		default:
			if len(p.Commands) > 0 {
				t.Errorf("%T holds in an empty cluster", c)
			}
		}
	}
}
