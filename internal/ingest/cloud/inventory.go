package cloud

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// The cloud is asked what it runs every Early for the first EarlyTimes times, then every
	// Late: what a crash has left behind is found soon, and nobody is bothered for long.
	Early      = 10 * time.Second
	EarlyTimes = 20
	Late       = 2 * time.Minute
	// Urgent is the least time between two, however much there is to be in doubt about.
	Urgent      = 5 * time.Second
	LongestWait = Late // the longest wait after failures
)

// Inventory is when the cloud was asked what it runs, and when it is to be asked again.
type Inventory struct {
	now      *cluster.Inventory
	answers  int // how often it has answered
	failures int // in a row
	// Last is when it was asked last.
	Last   time.Time
	urgent bool
}

// Due is when the cloud is to be asked again.
func (c *Inventory) Due() time.Time {
	wait := Late
	switch {
	case c.Last.IsZero():
		return time.Time{}
	case c.failures > 0:
		wait = min(Urgent<<min(c.failures-1, 20), LongestWait)
	case c.urgent:
		wait = Urgent
	case c.answers < EarlyTimes:
		wait = Early
	}
	return c.Last.Add(wait)
}

// Request asks for the list, and reports whether nobody has: something may have happened to a machine.
func (c *Inventory) Request() (news bool) {
	news = !c.urgent
	c.urgent = true
	return news
}

// Begin notes that the cloud is being asked, and reports whether that is due.
func (c *Inventory) Begin(now time.Time) bool {
	if now.Before(c.Due()) {
		return false
	}
	c.Last, c.urgent = now, false
	return true
}

// Failed notes that the cloud did not answer.
func (c *Inventory) Failed() { c.failures++ }

// Set takes in what the cloud said it runs when it was asked at the given time. It reports whether that is something
// else than before.
func (c *Inventory) Set(at time.Time, list []*cloudprovider.Instance) (news bool) {
	next := &cluster.Inventory{At: at, Instances: make([]cluster.Instance, 0, len(list))}
	for _, i := range list {
		next.Instances = append(next.Instances, cluster.Instance{
			ProviderID: i.ProviderID, Claim: i.ClaimName, ClaimUID: i.ClaimUID, Created: i.CreatedAt,
			Terminating: i.Terminating, Unproven: i.Unproven,
		})
	}
	slices.SortFunc(next.Instances, func(x, y cluster.Instance) int {
		return strings.Compare(x.ProviderID, y.ProviderID)
	})
	before := c.now
	c.now, c.failures = next, 0
	c.answers++
	return before == nil || !slices.Equal(before.Instances, next.Instances)
}

// Now is what the cloud said last; nil if it has not answered.
func (c *Inventory) Now() *cluster.Inventory { return c.now }

// goneDoubtAfter is how long the cloud may list an instance after it has said that it does not know it.
const goneDoubtAfter = 30 * time.Second

// Gone is since when the cloud says that instances are gone, by claim UID and by provider id.
type Gone map[string]time.Time

// Note takes in that an instance is gone. One without a claim may be beside the instance that its claim has.
func (g Gone) Note(c command.Terminate, at time.Time) {
	if g[c.ProviderID] = at; c.Claim != "" {
		g[c.UID] = at
	}
	delete(g, "")
}

// Has reports whether the instance of a claim, or the one with a provider id, is gone.
func (g Gone) Has(id string) bool {
	_, gone := g[id]
	return gone
}

// Keys are the claims and instances that it is known of.
func (g Gone) Keys() map[string]bool {
	out := make(map[string]bool, len(g))
	for key := range g {
		out[key] = true
	}
	return out
}

// Recheck takes the cloud by its later word: what it still lists long after it has said that it was gone is there.
func (g Gone) Recheck(now *cluster.Inventory) {
	for i := range now.Instances {
		x := &now.Instances[i]
		if at, gone := g[x.ProviderID]; gone && !x.Terminating && now.At.After(at.Add(goneDoubtAfter)) {
			delete(g, x.ProviderID)
		}
	}
}

// Forget forgets what nothing is left of; left yields the ids of what there is.
func (g Gone) Forget(left iter.Seq[string]) {
	if len(g) == 0 {
		return
	}
	there := make(map[string]bool, len(g))
	for id := range left {
		there[id] = true
	}
	maps.DeleteFunc(g, func(id string, _ time.Time) bool { return !there[id] })
}
