package disrupttest

import (
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// MovingFleet is FleetOf with words for what is under way.
func MovingFleet(line string, search func(*cluster.Snapshot, disrupt.Settings) disrupt.Proposal) *Fleet {
	parts := strings.Split(line, ";")
	f := FleetOf(parts[0])
	for _, part := range parts[1:] {
		words := strings.Fields(part)
		if !f.Moving(words[0], words[1], strings.Join(words[2:], " "), search) {
			f.make(words)
		}
	}
	return f
}

// Moving does what some words say of a move.
func (f *Fleet) Moving(who, verb, what string, search func(*cluster.Snapshot, disrupt.Settings) disrupt.Proposal) bool {
	return f.movingNode(who, verb, what) || f.movingWorld(who, verb, what, search)
}

// movingNode does what words say of nodes and their moves.
func (f *Fleet) movingNode(who, verb, what string) bool {
	names := strings.Split(who, "+")
	length, _ := time.ParseDuration(what)
	switch verb {
	case "move": // together, for a reason
		f.Fenced(command.Reason(what), names...)
	case "replaces": // a node of another move
		c := f.Claim(who)
		c.Replaces, c.Created, c.LastPodEvent = f.Claim(what).Move, f.Now.Add(-50*time.Second), time.Time{}
	case "began":
		for _, name := range names {
			c := f.Claim(name)
			if last := &c.Conditions[len(c.Conditions)-1]; last.Type == cluster.DisruptionReason {
				last.Since = f.Now.Add(-length)
			}
		}
	case "drifted":
		f.Drifted(names...)
	case "sick":
		f.Sicken(length, names...)
	case "warned":
		f.Warned(who, length)
	case "forced": // by the cloud, at once
		f.Warned(who, length).Interruption.Force = true
	case "grace":
		f.Claim(who).HasTerminationGrace, f.Claim(who).TerminationGrace = true, length
	case "failing": // the planner
		f.S.Quarantine.Claims = map[string]cluster.Failure{who: {}}
	case "old": // so long before its end
		f.Claim(who).ExpireAfter = cluster.NillableDuration{For: 3*time.Hour + length}
		f.Pool.Overrides.SoftExpiry = time.Hour
	case "fences", "opens", "deletes":
		f.S.InFlight[map[string]string{"fences": "fence/", "opens": "unfence/", "deletes": "delete/"}[verb]+who] = true
	case "costs":
		f.Claim(who).Price, _ = strconv.ParseFloat(what, 64)
	case "unsold": // nobody sells what it is any more
		f.Claim(who).Price, f.Claim(who).Labels = 0, f.Claim(who).Labels.With(cluster.InstanceTypeLabel, "unsold")
	case "aged":
		f.Claim(who).Created = f.Now.Add(-length)
	case "open":
		f.Host(who).Taints = nil
	default:
		return false
	}
	return true
}

// movingWorld does what words say of all else.
func (f *Fleet) movingWorld(who, verb, what string,
	search func(*cluster.Snapshot, disrupt.Settings) disrupt.Proposal) bool {
	switch verb {
	case "failed": // a command, and is tried again in a while
		f.S.Retry[what+"/"+who] = cluster.Retry{Attempts: 1, NotBefore: f.Now.Add(time.Minute)}
	case "found": // by a search
		p := search(f.S.Seal(), f.Set)
		f.O.Proposal = &p
	case "placed": // pods that wait have been given places
		p := schedule.Place(f.S.Seal().SchedulerView(), f.Set.Schedule)
		f.O.Placement = &p
	case "alike": // pods that ask for the same are twins
		classes := make(map[string]*cluster.PodClass)
		for _, p := range f.S.Pods {
			if classes[p.Class.Key] == nil {
				classes[p.Class.Key] = p.Class
			}
			p.Class = classes[p.Class.Key]
		}
	case "guard":
		allowed, _ := strconv.Atoi(what)
		f.Guard(allowed, 1, 3)
	case "sold":
		f.Pool.NodeClass.Ready = false
	case "unreadable":
		f.Pool.Problems = []cluster.Problem{{Field: "spec.limits"}}
	case "canary":
		f.Pool.Overrides.Canary = true
	case "static":
		n, _ := strconv.Atoi(what)
		f.Pool.Static, f.Pool.Replicas, f.O.Static = true, int64(n), true
	default:
		return false
	}
	return true
}
