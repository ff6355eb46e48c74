package plan

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// PlannerFailed is the reason under which people are told that the planner leaves something out because it has failed
// on it.
const PlannerFailed = "PlannerFailed"

// tellFailures says what the plan has left out because the planner has failed on it before.
func (p *Plan) tellFailures(s *cluster.Snapshot) {
	q := &s.Quarantine
	if !q.Any() {
		return
	}
	p.WakeAt = cluster.Earlier(p.WakeAt, q.Until())
	p.addRefusals(s)
	p.tellHeld(s)
	p.tellUnsearched(s)
	for _, part := range append(cluster.Parts(), cluster.Searching) {
		f, out := q.Parts[part]
		if !out {
			continue
		}
		p.tellPools(s, reason.Of(reason.PartFailed, part, f.Message, f.Until))
	}
	for _, c := range s.Claims {
		if f, out := q.Claims[c.Name]; out {
			p.Notes = append(p.Notes, asWarning(c.Note(PlannerFailed, reason.Of(reason.ClaimFailed, f.Message,
				f.Until))))
		}
	}
}

// tellHeld says on the pools that nodes stay because pods or claims are left out.
func (p *Plan) tellHeld(s *cluster.Snapshot) {
	q := &s.Quarantine
	if !q.HasPodsOrClaims() {
		return
	}
	p.tellPools(s, reason.Of(reason.LeftOut, len(q.Classes), len(q.Claims)))
}

// tellPools says on every pool that something has failed.
func (p *Plan) tellPools(s *cluster.Snapshot, text reason.Text) {
	for _, pool := range s.Pools {
		p.Notes = append(p.Notes, asWarning(pool.Note(PlannerFailed, text)))
	}
}

// tellUnsearched says on the pools that nodes are not looked at by the search for cheaper ones.
func (p *Plan) tellUnsearched(s *cluster.Snapshot) {
	q := &s.Quarantine
	if len(q.SearchClasses)+len(q.SearchClaims) == 0 {
		return
	}
	p.tellPools(s, reason.Of(reason.SearchLeftOut, len(q.SearchClasses), len(q.SearchClaims)))
}

// addRefusals gives each pod whose class is left out its refusal; where no pod can be placed at all, all of them.
func (p *Plan) addRefusals(s *cluster.Snapshot) {
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
	reject(s.QuarantinedPods(), func(pod *cluster.Pod) cluster.Failure { return s.Quarantine.Classes[pod.Class.Key] })
	if f, out := s.Quarantine.Parts[cluster.Placing]; out {
		reject(s.Pending(), func(*cluster.Pod) cluster.Failure { return f })
	}
	if len(why) > 0 {
		p.Provisioned, p.Placement.Unplaced = true, refused
	}
}

func asWarning(n cluster.Note) cluster.Note {
	n.Warning = true
	return n
}

// PlannerFailure is a failure of the planner, or of what stands around it, and what was done about it.
type PlannerFailure struct {
	// Step is what failed, one of those below.
	Step string
	// Panic is what it failed with, Stack is where.
	Panic, Stack string
	// Frames are the innermost functions of the stack with their lines, as far as they are known: failures with the
	// same step and frames are the same mistake, whatever they say.
	Frames string
	// LeftOut is what is left out from now on; Pods is how many pods that leaves without a place.
	LeftOut cluster.Quarantine
	Pods    int
	// Tries is how many plans it took to find that out.
	Tries int
	// Commands are the keys of those that are left out of this plan, because it could not be checked with them.
	Commands []string
	// Minimal says that plans fail whatever is left out, so that only NodeClaims that are there go on
	// (plan.MakeMinimal), and MinimalFailed that this fails, too. Unchecked says that the plan could not be checked, so
	// that nothing of it is begun which takes a node away.
	Minimal, MinimalFailed, Unchecked bool
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
	StepCloud    = "cloud" // what the provider does, when it is asked or in the background
	StepPass     = "pass"  // what is around the others
)

// Whose says in whom the mistake is.
func (f PlannerFailure) Whose() string {
	if f.Step == StepCloud {
		return "the provider"
	}
	return "Tenon"
}

// Steps lists the steps.
func Steps() []string {
	return []string{StepMake, StepSearch, StepCheck, StepSnapshot, StepCommand, StepObserve, StepWatch,
		StepCloud, StepPass}
}
