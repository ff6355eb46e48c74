package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Failed is the reason under which people are told that the planner leaves something out because it has failed on it.
const Failed = "PlannerFailed"

// tellFailures says what the plan has left out because the planner has failed on it before.
func (p *Plan) tellFailures(s *cluster.Snapshot) {
	q := &s.Quarantine
	if !q.Any() {
		return
	}
	p.WakeAt = cluster.Earlier(p.WakeAt, q.Until())
	p.refuse(s)
	p.tellHeld(s)
	p.tellUnsearched(s)
	for _, part := range append(cluster.Parts(), cluster.Searching) {
		f, out := q.Parts[part]
		if !out {
			continue
		}
		p.tellPools(s, fmt.Sprintf("%s, which is a mistake in Tenon: %s. It is left out until %s; everything else goes on",
			halted(part), f.Message, f.Until.UTC().Format(time.RFC3339)))
	}
	for _, c := range s.Claims {
		if f, out := q.Claims[c.Name]; out {
			text := fmt.Sprintf("The planner failed on this NodeClaim, which is a mistake in Tenon: %s. It is left as it is until %s",
				f.Message, f.Until.UTC().Format(time.RFC3339))
			p.Notes = append(p.Notes, warn(c.Note(Failed, text)))
		}
	}
}

// tellHeld says on the pools that nodes stay because pods or claims are left out.
func (p *Plan) tellHeld(s *cluster.Snapshot) {
	q := &s.Quarantine
	if !q.Holds() {
		return
	}
	p.tellPools(s, fmt.Sprintf("The planner failed on %d classes of pods and %d NodeClaims, which is a mistake in Tenon. "+
		"They are left out for a while. Nodes that carry them or were made for them are not disrupted; "+
		"everything else goes on", len(q.Classes), len(q.Claims)))
}

// tellPools says on every pool that something has failed.
func (p *Plan) tellPools(s *cluster.Snapshot, text string) {
	for _, pool := range s.Pools {
		p.Notes = append(p.Notes, warn(pool.Note(Failed, text)))
	}
}

// tellUnsearched says on the pools that nodes are not looked at by the search for cheaper ones.
func (p *Plan) tellUnsearched(s *cluster.Snapshot) {
	q := &s.Quarantine
	if len(q.SearchClasses)+len(q.SearchClaims) == 0 {
		return
	}
	p.tellPools(s, fmt.Sprintf("The search for cheaper nodes failed on %d classes of pods and %d NodeClaims, "+
		"which is a mistake in Tenon. Their nodes are not replaced by cheaper ones; "+
		"all other nodes can be, and pods get nodes as usual", len(q.SearchClasses), len(q.SearchClaims)))
}

// refuse gives each pod whose class is left out its refusal; where no pod can be placed at all, all of them.
func (p *Plan) refuse(s *cluster.Snapshot) {
	refused := slices.Clone(p.Placement.Unplaced) // what is remembered stays as it was
	why := make(map[string]*cluster.Failure)
	reject := func(pods []*cluster.Pod, find func(*cluster.Pod) cluster.Failure) {
		for _, pod := range pods {
			if why[pod.Class.Key] == nil {
				f := find(pod)
				why[pod.Class.Key] = &f
			}
			refused = append(refused, schedule.Unplaced{Pod: pod, Failed: why[pod.Class.Key]})
		}
	}
	reject(s.Refused(), func(pod *cluster.Pod) cluster.Failure { return s.Quarantine.Classes[pod.Class.Key] })
	if f, out := s.Quarantine.Parts[cluster.Placing]; out {
		reject(s.Pending(), func(*cluster.Pod) cluster.Failure { return f })
	}
	if len(why) > 0 {
		p.Provisioned, p.Placement.Unplaced = true, refused
	}
}

func warn(n cluster.Note) cluster.Note {
	n.Warning = true
	return n
}

// halted says which part of planning has failed.
func halted(part cluster.Part) string {
	switch part {
	case cluster.Interrupting:
		return "Replacing interrupted nodes failed"
	case cluster.Placing:
		return "Finding places for pods failed"
	case cluster.Guiding:
		return "Telling pods their new nodes failed"
	case cluster.Telling:
		return "Working out the status of NodeClaims and NodePools failed"
	case cluster.Disrupting:
		return "Deciding which nodes to remove failed"
	case cluster.Collecting:
		return "Ending instances that no NodeClaim accounts for failed"
	}
	return "The search for cheaper nodes failed"
}

// Breakdown is a failure of the planner, or of what stands around it, and what was done about it.
type Breakdown struct {
	// Step is what failed, one of those below.
	Step string
	// Panic is what it failed with, Stack is where.
	Panic, Stack string
	// Frames are the innermost functions of the stack with their lines, as far as they are known: failures with the same
	// step and frames are the same mistake, whatever they say.
	Frames string
	// Left is what is left out from now on; Pods is how many pods that leaves without a place.
	Left cluster.Quarantine
	Pods int
	// Tries is how many plans it took to find that out.
	Tries int
	// Commands are the keys of those that are left out of this plan, because it could not be checked with them.
	Commands []string
	// Bare says that plans fail whatever is left out, so that only NodeClaims that are there go on (plan.Bare), and Helpless
	// that this fails, too. Unchecked says that the plan could not be checked, so that nothing of it is begun which takes a
	// node away.
	Bare, Helpless, Unchecked bool
}

// The steps that can fail.
const (
	StepMake     = "make"
	StepSearch   = "search"
	StepCheck    = "check"
	StepSnapshot = "snapshot"
	StepCommand  = "command"
	StepObserve  = "observe"
	StepWatch    = "watch" // taking in an object of Kubernetes, or an answer of the cloud
	StepCloud    = "cloud" // what the provider does in the background
	StepPass     = "pass"  // what is around the others
)

// Steps lists the steps.
func Steps() []string {
	return []string{StepMake, StepSearch, StepCheck, StepSnapshot, StepCommand, StepObserve, StepWatch, StepCloud, StepPass}
}
