package lifecycle

import (
	"fmt"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
)

// refuse tells what is wrong with a claim that a person wrote. The claim is theirs: it is kept, and never launched as long
// as its text is what it is.
func (t *turn) refuse() {
	parts := make([]string, len(t.c.Problems))
	for i, p := range t.c.Problems {
		parts[i] = p.Field + ": " + p.Text
	}
	message := strings.Join(parts, "; ")
	t.say(cluster.Launched, cluster.False, string(command.Invalid), message)
	t.warn(t.c.Note(string(command.Invalid), message))
}

// launch asks for an instance, unless it is known that the answer would be no or it is somebody else's turn to find out.
func (t *turn) launch() {
	cond := t.c.Condition(cluster.Launched)
	if cond.Status == cluster.False && cond.Reason != string(command.Invalid) {
		t.remove(command.Reason(cond.Reason), cond.Message)
		return
	}
	act := command.LaunchInstance{Claim: t.c.Name, UID: t.c.UID}
	busy := t.s.Busy[act.Key()]
	timeout := t.timeouts().Launch
	if deadline := t.c.Since().Add(timeout); t.s.Now.Before(deadline) {
		t.wake(deadline)
	} else {
		if !busy { // deleting the claim now could leave an instance behind; the launch's end wakes us
			t.remove(command.LaunchTimeout, fmt.Sprintf("no instance could be launched within %s", timeout))
		}
		return
	}
	if busy {
		return
	}
	switch verdict, until := t.queue.ask(t.c); verdict {
	case hopeless:
		t.remove(command.InsufficientCapacity, "none of the offerings that it may use is available any more")
	case held:
		t.remove(command.LaunchesRefused, "the launches of its NodePool fail; its pods may have a place elsewhere")
	case wait:
		t.wake(until)
	case ask:
		t.do(act)
	}
}

// attempted reports whether the cloud may have been asked for the claim's instance before: then it may be running although
// we don't know of it.
func attempted(s *cluster.Snapshot, c *cluster.Claim) bool {
	if _, tried := s.Retry[command.LaunchInstance{Claim: c.Name}.Key()]; tried {
		return true
	}
	return c.Condition(cluster.Launched).Reason != "" && c.Condition(cluster.Launched).Reason != string(command.Invalid)
}

// prospects are the offerings that the claim may become and that can be bought. known is false if that is not known, or if
// there is at least one about which there is no doubt; otherwise all of them are on trial.
func prospects(p *cluster.Pool, c *cluster.Claim) (trials []sale, known bool) {
	catalog := p.Catalog
	var asked require.Set
	for _, e := range c.Requirements {
		if catalog.Index().Knows(e.Key) {
			asked = asked.With(e.Key, e.Values)
		}
	}
	for i := range catalog.Index().MatchAll(asked).All {
		o := &catalog.Offerings[i]
		switch {
		case o.Reservation != "": // the claim's own share of it counts as taken
			return nil, false
		case !o.Available:
		case !o.Trial:
			return nil, false
		default:
			trials = append(trials, sale{catalog.Types[o.Type].Name, o.Zone, o.CapacityType})
		}
	}
	return trials, true
}
