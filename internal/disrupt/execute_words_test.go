package disrupt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// movingFleet is fleetOf with words for what is under way.
func movingFleet(line string) *fleet {
	parts := strings.Split(line, ";")
	f := fleetOf(parts[0])
	for _, part := range parts[1:] {
		words := strings.Fields(part)
		if !f.moving(words[0], words[1], strings.Join(words[2:], " ")) {
			f.make(words)
		}
	}
	return f
}

// moving does what some words say of a move.
func (f *fleet) moving(who, verb, what string) bool {
	names := strings.Split(who, "+")
	length, _ := time.ParseDuration(what)
	switch verb {
	case "move": // together, for a reason
		f.fenced(command.Reason(what), names...)
	case "replaces": // a node of another move
		c := f.claim(who)
		c.Replaces, c.Created, c.LastPodEvent = f.claim(what).Move, f.now.Add(-50*time.Second), time.Time{}
	case "began":
		for _, name := range names {
			c := f.claim(name)
			if last := &c.Conditions[len(c.Conditions)-1]; last.Type == cluster.DisruptionReason {
				last.Since = f.now.Add(-length)
			}
		}
	case "drifted":
		f.drifted(names...)
	case "sick":
		f.sicken(length, names...)
	case "warned":
		f.warned(who, length)
	case "forced": // by the cloud, at once
		f.warned(who, length).Interruption.Force = true
	case "grace":
		f.claim(who).HasTerminationGrace, f.claim(who).TerminationGrace = true, length
	case "failing": // the planner
		f.s.Quarantine.Claims = map[string]cluster.Failure{who: {}}
	case "old": // so long before its end
		f.claim(who).ExpireAfter = cluster.NillableDuration{For: 3*time.Hour + length}
		f.pool.Overrides.SoftExpiry = time.Hour
	case "fences", "opens", "deletes":
		f.s.InFlight[map[string]string{"fences": "fence/", "opens": "unfence/", "deletes": "delete/"}[verb]+who] = true
	case "failed": // a command, and is tried again in a while
		f.s.Retry[what+"/"+who] = cluster.Retry{Attempts: 1, NotBefore: f.now.Add(time.Minute)}
	case "open":
		f.host(who).Taints = nil
	case "costs":
		f.claim(who).Price, _ = strconv.ParseFloat(what, 64)
	case "found": // by a search
		p := Search(f.s.Seal(), f.set)
		f.o.Proposal = &p
	case "placed": // pods that wait have been given places
		p := schedule.Place(f.s.Seal().SchedulerView(), f.set.Schedule)
		f.o.Placement = &p
	case "alike": // pods that ask for the same are twins
		classes := make(map[string]*cluster.PodClass)
		for _, p := range f.s.Pods {
			if classes[p.Class.Key] == nil {
				classes[p.Class.Key] = p.Class
			}
			p.Class = classes[p.Class.Key]
		}
	case "unsold": // nobody sells what it is any more
		f.claim(who).Price, f.claim(who).Labels = 0, f.claim(who).Labels.With(cluster.InstanceTypeLabel, "unsold")
	case "aged":
		f.claim(who).Created = f.now.Add(-length)
	case "guard":
		allowed, _ := strconv.Atoi(what)
		f.guard(allowed, 1, 3)
	case "sold":
		f.pool.NodeClass.Ready = false
	case "unreadable":
		f.pool.Problems = []cluster.Problem{{Field: "spec.limits"}}
	case "canary":
		f.pool.Overrides.Canary = true
	case "static":
		n, _ := strconv.Atoi(what)
		f.pool.Static, f.pool.Replicas, f.o.Static = true, int64(n), true
	default:
		return false
	}
	return true
}

// told tells in short what one part of a plan makes of the cluster.
func (f *fleet) told(part string) string {
	s := f.s.Seal()
	var r Result
	switch part {
	case "moves":
		r, _ = Execute(s, f.set, f.o)
	case "interrupted":
		r, _, _ = Interrupt(s, f.set, f.o, false)
	case "interrupted, while pods are counted":
		r, _, _ = Interrupt(s, f.set, f.o, true)
	case "start":
		r = StartRequired(s, f.set, f.o)
	case "sick":
		r = Repair(s, f.o.Repair)
	case "empty":
		r = Empty(s, nil, f.set.Nomination)
	case "static":
		r = Static(s, f.set.Schedule)
	}
	out := []string{outcome(&r)}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, c := range r.Commands {
		switch c := c.(type) {
		case command.DeleteClaim:
			say("%s goes: %s", c.Claim, c.Message)
			if !c.Deadline.IsZero() {
				say("in %s", c.Deadline.Sub(f.now))
			}
		case command.Unfence:
			if c.ForSaving {
				say("%s may still go because it has to", c.Claim)
			}
		}
	}
	for i := range r.Replacements {
		pods := names(r.Replacements[i].Bin.Pods)
		slices.Sort(pods)
		say("new %s for %s", strings.Join(r.Replacements[i].Bin.Types, "|"), strings.Join(pods, "+"))
		for _, seat := range r.Replacements[i].Bin.Seats {
			say("kept for %s: %d", seat.Class, seat.Count)
		}
	}
	for _, n := range r.Notes {
		say("tell %s %s: %s", n.Kind, n.Name, n.Message)
	}
	if !r.WakeAt.IsZero() {
		say("look again in %s", r.WakeAt.Sub(f.now))
	}
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), "; ")
}
