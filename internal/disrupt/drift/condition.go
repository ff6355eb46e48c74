package drift

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/reason"
)

// How a node may differ from what its pool asks for; the cloud has more words of its own.
const (
	// PoolDrifted: the pool's template has changed since the claim was made.
	PoolDrifted = "NodePoolDrifted"
	// RequirementsDrifted: the node is none that the pool's requirements allow.
	RequirementsDrifted = "RequirementsDrifted"
	// TypeNotFound: what the node is, is no longer sold.
	TypeNotFound = "InstanceTypeNotFound"
)

// typeMissingAfter is how old a claim must be before a type that is not sold counts against it: a list of types may be
// incomplete for a while.
const typeMissingAfter = time.Hour

// Of says how a claim's node differs from what its pool or its class asks for; empty if it does not.
func Of(s *cluster.Snapshot, c *cluster.Claim) (why string) {
	why, _ = Find(s, c)
	return why
}

// Find is Of; known is false if it can't be told now.
func Find(s *cluster.Snapshot, c *cluster.Claim) (why string, known bool) {
	p := s.Pool(c.Pool)
	switch {
	case p == nil || len(p.Problems) > 0: // a slip of the pen must not roll a whole pool
		return "", false
	case !c.Is(cluster.Launched):
		return "", true
	case c.Hash != "" && p.Hash != "" && c.HashVersion == p.HashVersion && c.Hash != p.Hash:
		return PoolDrifted, true
	}
	n := s.NodeOf(c.Name)
	if !c.HasLabels() {
		return "", false
	}
	for _, e := range p.Template.Requirements {
		value, present := c.Labels.Get(e.Key)
		if !present && n != nil {
			value, present = n.Labels.Get(e.Key)
		}
		if !e.Values.Matches(value, present) {
			return RequirementsDrifted, true
		}
	}
	if p.Catalog != nil && !s.Now.Before(c.Created.Add(typeMissingAfter)) && !inCatalog(p.Catalog, c) {
		return TypeNotFound, true
	}
	return c.DriftedFrom, p.Catalog != nil || c.DriftedFrom != ""
}

// inCatalog reports whether the catalog still has what the claim has become, be it to be had or not. What was reserved
// may become on-demand when the reservation ends.
func inCatalog(catalog *cluster.Catalog, c *cluster.Claim) bool {
	kind, _ := c.Labels.Get(cluster.InstanceTypeLabel)
	zone, zoned := c.Labels.Get(cluster.ZoneLabel)
	terms, termed := c.Labels.Get(cluster.CapacityTypeLabel)
	first, end := catalog.RangeOf(kind)
	for i := first; i < end; i++ {
		o := &catalog.Offerings[i]
		if (!zoned || o.Zone == zone) && (!termed || o.CapacityType == terms || terms == disrupt.CapacityReserved &&
			o.CapacityType == disrupt.OnDemand) {
			return true
		}
	}
	return false
}

// ClaimConditions adds to the commands what claims should say about their disruption: whether they have drifted, and
// whether they have been quiet for long enough to be consolidated, and whether they have taken over, as far as the
// rolls ask. What is written on a claim anyway is written together with it. wake is when a claim will have something
// new to say.
func ClaimConditions(s *cluster.Snapshot, rollouts *Rollouts, commands []command.Command) (out []command.Command,
	wake time.Time) {
	tookOver := rollouts.takenOver()
	written := make(map[string]int)
	for i, c := range commands {
		if set, ok := c.(command.SetClaim); ok {
			written[set.Claim] = i
		}
	}
	for _, c := range s.Claims {
		if c.Expected || !c.Deleting.IsZero() {
			continue
		}
		tell := command.SetClaim{Claim: c.Name}
		i, known := written[c.Name]
		if known {
			tell = commands[i].(command.SetClaim)
		}
		changes, at := changedConditions(s, c, tell.LastPodEvent)
		wake = cluster.Earlier(wake, at)
		if tookOver[c] {
			changes = withCondition(changes, c, cluster.TookOver, true, "TookOver", reason.Text{})
		}
		if len(changes) == 0 {
			continue
		}
		tell.Conditions = append(tell.Conditions[:len(tell.Conditions):len(tell.Conditions)], changes...)
		if known {
			commands[i] = tell
		} else {
			commands = append(commands, tell)
		}
	}
	return commands, wake
}

// changedConditions are the conditions of a claim that are to be changed; saving is the time of the last pod event if
// it is just being written.
func changedConditions(s *cluster.Snapshot, c *cluster.Claim, saving time.Time) (changes []command.Condition,
	wake time.Time) {
	if why, known := Find(s, c); known {
		changes = withCondition(changes, c, cluster.Drifted, why != "", why, reason.Said(why))
	}
	quiet, sure, wake := consolidatable(s, c, saving)
	if sure {
		changes = withCondition(changes, c, cluster.Consolidatable, quiet, cluster.Consolidatable, reason.Text{})
	}
	return changes, wake
}

// withCondition adds a condition that the claim does not carry yet, or takes one away that it should no longer.
func withCondition(changes []command.Condition, c *cluster.Claim, kind string, holds bool, why string,
	text reason.Text) []command.Condition {
	described := c.Condition(kind)
	switch {
	case holds && (described.Status != cluster.True || described.Reason != why):
		return append(changes, command.Condition{Type: kind, Status: cluster.True, Reason: why, Text: text})
	case !holds && described.Status == cluster.True:
		return append(changes, command.Condition{Type: kind, Status: cluster.Absent})
	}
	return changes
}

// consolidatableDelay is how long after a node has become quiet its claim says so: nobody waits for it, and most nodes
// are new then and about to get their pods. A node that goes sooner says so when it is fenced.
const consolidatableDelay = 10 * time.Second

// consolidatable reports whether the claim's node has been quiet for as long as its pool asks for. It is said a while
// later, and taken back only once the pod event that is the reason has been written on the claim, which happens now and
// then: a node where pods come and go all the time is not written to each time. sure is false until then.
func consolidatable(s *cluster.Snapshot, c *cluster.Claim, saving time.Time) (quiet, sure bool, wake time.Time) {
	p := s.Pool(c.Pool)
	if p == nil {
		return false, false, time.Time{}
	}
	wait, _ := disrupt.QuietPeriod(p, command.Underutilized)
	if p.Static || wait.Never || !c.Is(cluster.Initialized) {
		return false, true, time.Time{}
	}
	at := disrupt.QuietAt(wait, c, 0)
	if due := at.Add(consolidatableDelay); !s.Now.Before(at) {
		if described := c.Is(cluster.Consolidatable); !described && s.Now.Before(due) {
			return true, false, due
		}
		return true, true, time.Time{}
	}
	told := cluster.Claim{Conditions: c.Conditions, LastPodEvent: c.SavedPodEvent}
	if saving.After(told.LastPodEvent) {
		told.LastPodEvent = saving
	}
	return false, s.Now.Before(disrupt.QuietAt(wait, &told, 0)), at.Add(consolidatableDelay)
}
