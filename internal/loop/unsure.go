package loop

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// asRetry is a command whose last try may or may not have been carried out, as it is tried next. If nobody needs a
// claim any more by what was seen last, it is not made any more, but only looked for: an API server that fails for an
// hour, or for ever, must not be asked for it that long.
func (l *Loop) asRetry(c command.Command) command.Command {
	s := l.newestSnapshot.Load()
	if create, ok := c.(command.CreateClaim); ok && s != nil {
		create.ConfirmOnly = !isClaimNeeded(s, &create)
		return create
	}
	return c
}

// isClaimNeeded reports whether the pool of a claim is there, and one of the pods that it is made for: one that waits
// or, if the node takes the place of others, that runs.
func isClaimNeeded(s *cluster.Snapshot, c *command.CreateClaim) bool {
	if pool := s.Pool(c.Pool); pool == nil || pool.Deleting || pool.UID != c.PoolUID {
		return false
	}
	if len(c.Pods) == 0 {
		return true
	}
	of := make(map[string]bool, len(c.Pods))
	for _, p := range c.Pods {
		of[p.UID] = true
	}
	for _, p := range s.Pods {
		if of[p.UID] && !p.Finished && (c.Replaces != "" || p.Node == "" && p.Deleting.IsZero()) {
			return true
		}
	}
	return false
}
