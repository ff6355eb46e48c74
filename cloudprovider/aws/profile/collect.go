package profile

import (
	"context"
	"errors"
	"time"
)

// protect is how long a profile is left alone that is new or has gone out of use: a launch may be on its way with it.
const protect = time.Hour

// Collector removes the profiles that no class and no node needs. It remembers when it saw each in use, and starts anew
// after a restart, so a restart only makes it wait longer.
type Collector struct {
	keeper *Keeper
	now    func() time.Time
	// idle is since when a profile has been seen out of use.
	idle map[string]time.Time
}

// NewCollector returns a Collector that has seen nothing yet. It is for one caller at a time.
func NewCollector(k *Keeper, now func() time.Time) *Collector {
	return &Collector{keeper: k, now: now, idle: map[string]time.Time{}}
}

// Collect removes the profiles that inUse has said no to for an hour, and returns their names. One that can't be
// removed does not keep the others.
func (c *Collector) Collect(ctx context.Context, inUse func(Profile) bool) ([]string, error) {
	profiles, err := c.keeper.List(ctx)
	if err != nil {
		return nil, err
	}
	now := c.now()
	idle := map[string]time.Time{}
	var gone []string
	var failed []error
	for _, p := range profiles {
		if inUse(p) {
			continue
		}
		since, seen := c.idle[p.Name]
		if !seen {
			since = now
		}
		if now.Sub(since) < protect || now.Sub(p.CreatedAt) < protect {
			idle[p.Name] = since
			continue
		}
		if err := c.keeper.Delete(ctx, p); err != nil {
			idle[p.Name] = since
			failed = append(failed, err)
			continue
		}
		gone = append(gone, p.Name)
	}
	c.idle = idle
	return gone, errors.Join(failed...)
}
