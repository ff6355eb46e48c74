package controlplane

import (
	"errors"

	"github.com/tenon-sh/tenon/lab/internal/process"
)

// reviveTries is how often a part whose port somebody has taken while it was away is started again.
const reviveTries = 5

// guard follows a part until it ends for good. A part that ended because somebody asked for its restart is started
// again as it was, with the same ports and data; any other end is the end of the lab.
func (c *ControlPlane) guard(p part, now *process.Process) {
	for tries := 0; ; {
		<-now.Done()
		failure := now.Failure()
		switch {
		case c.dir.TakeRestart(p.name):
			tries = reviveTries
		case tries > 0 && portTaken(failure):
			tries--
		default:
			c.fail(explain(c.dir, failure))
			return
		}
		next, err := c.revive(p, now)
		if err != nil {
			c.fail(err)
			return
		}
		now = next
	}
}

func portTaken(err error) bool {
	var failure *process.Failure
	return errors.As(err, &failure) && failure.PortTaken()
}

func (c *ControlPlane) fail(err error) {
	select {
	case c.failure <- err:
	default:
	}
}

// errStopping is why nothing is started any more.
var errStopping = errors.New("the lab is ending")

// revive starts a part in the place of one that ended, and writes the new process down.
func (c *ControlPlane) revive(p part, ended *process.Process) (*process.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return nil, errStopping
	}
	next, err := c.run(p)
	if err != nil {
		return nil, err
	}
	for i := range c.running {
		if c.running[i].process == ended {
			c.running[i].process = next
		}
	}
	return next, c.saveRecord()
}
