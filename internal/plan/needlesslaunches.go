package plan

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/command"
)

// dropNeedlessLaunches drops the launches for claims that the same plan lets go: the instance would only be ended
// again.
func (p *Plan) dropNeedlessLaunches() {
	going := make(map[string]bool)
	for _, c := range p.Commands {
		if d, ok := c.(command.DeleteClaim); ok {
			going[d.Claim] = true
		}
	}
	if len(going) == 0 {
		return
	}
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		l, ok := c.(command.LaunchInstance)
		return ok && going[l.Claim]
	})
}
