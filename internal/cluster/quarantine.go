package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Quarantine is what the planner has failed on: it is left out of plans for a while, so that everything else goes on.
type Quarantine struct {
	// Classes of pods, by key: nobody looks for a place for their pods.
	Classes map[string]Failure
	// Claims, by name: nothing is done to them, or to nodes of the same name. They count as before.
	Claims map[string]Failure
	// Parts of planning that are left out altogether.
	Parts map[Part]Failure
	// SearchClasses and SearchClaims are left out of the search for cheaper nodes, and of nothing else.
	SearchClasses, SearchClaims map[string]Failure
}

// Part is a part of planning.
type Part string

// The parts, those first that people miss first.
const (
	Interrupting  Part = "interruption" // nodes that the cloud takes away are replaced
	Placing       Part = "placement"    // pods without a place get one
	Nominating    Part = "guidance"     // pods are told which node is theirs
	WritingStatus Part = "status"       // claims and pools tell what there is
	Disrupting    Part = "disruption"   // nodes that are empty, too dear, drifted, old or unhealthy go
	Collecting    Part = "orphans"      // instances and nodes that no claim accounts for go
	Searching     Part = "search"       // cheaper nodes are looked for
)

// Parts lists the parts that plan.Make has, in the order in which people miss them.
func Parts() []Part {
	return []Part{Interrupting, Placing, Nominating, WritingStatus, Disrupting, Collecting}
}

// Failure is what is known of a failure of the planner.
type Failure struct {
	// Since is when it was found out, Until when what is left out is tried again.
	Since, Until time.Time
	// Message is what the planner failed with.
	Message string
	// Group is 0 if the planner is known to fail on it. Otherwise it fails on some of those with the same number, and
	// they are still to be told apart.
	Group int
	// PairedWith is the class without which the planner does not fail on this one; empty if there is none.
	PairedWith string
}

// Any reports whether anything is left out.
func (q *Quarantine) Any() bool {
	return len(q.Classes)+len(q.Claims)+len(q.Parts)+len(q.SearchClasses)+len(q.SearchClaims) > 0
}

// HasPodsOrClaims reports whether some pods or claims are left out (see IsLeftAlone).
func (q *Quarantine) HasPodsOrClaims() bool { return len(q.Classes)+len(q.Claims) > 0 }

// LeavesOut reports whether the part is left out.
func (q *Quarantine) LeavesOut(part Part) bool {
	_, out := q.Parts[part]
	return out
}

// Until is when the first of all that is left out is tried again; zero if there is nothing.
func (q *Quarantine) Until() time.Time {
	var at time.Time
	for _, of := range []map[string]Failure{q.Classes, q.Claims, q.SearchClasses, q.SearchClaims} {
		for _, f := range of {
			at = Earlier(at, f.Until)
		}
	}
	for _, f := range q.Parts {
		at = Earlier(at, f.Until)
	}
	return at
}

// With is the quarantine with more in it.
func (q Quarantine) With(more Quarantine) Quarantine {
	return Quarantine{
		Classes: mergeFailures(q.Classes, more.Classes), Claims: mergeFailures(q.Claims, more.Claims),
		Parts:         mergeFailures(q.Parts, more.Parts),
		SearchClasses: mergeFailures(q.SearchClasses, more.SearchClasses), SearchClaims: mergeFailures(q.SearchClaims,
			more.SearchClaims),
	}
}

func mergeFailures[K comparable](a, b map[K]Failure) map[K]Failure {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(a)
	if out == nil {
		out = make(map[K]Failure, len(b))
	}
	maps.Copy(out, b)
	return out
}

// WithQuarantine is the snapshot with more in quarantine.
func (s *Snapshot) WithQuarantine(more Quarantine) *Snapshot {
	out := *s
	out.Quarantine = s.Quarantine.With(more)
	return out.Seal()
}

// WithOnlyQuarantine is the snapshot with this in quarantine, and nothing else.
func (s *Snapshot) WithOnlyQuarantine(q Quarantine) *Snapshot {
	out := *s
	out.Quarantine = q
	return out.Seal()
}

// ForSearch is the snapshot as the search for cheaper nodes sees it: what only the search leaves out is left out.
func (s *Snapshot) ForSearch() *Snapshot {
	q := &s.Quarantine
	if len(q.SearchClasses)+len(q.SearchClaims) == 0 {
		return s
	}
	return s.WithQuarantine(Quarantine{Classes: q.SearchClasses, Claims: q.SearchClaims})
}

// IsQuarantined reports whether the pod's class is left out.
func (s *Snapshot) IsQuarantined(p *Pod) bool {
	_, out := s.Quarantine.Classes[p.Class.Key]
	return out
}

// IsLeftAlone reports whether the claim's node goes only if it has to, because the planner has failed on it, on a class
// of pods of which one runs there, or on pods of an owner that it was made for. Nobody knows what such pods would find
// elsewhere, or when they come.
func (s *Snapshot) IsLeftAlone(c *Claim) bool {
	q := &s.Quarantine
	if !q.HasPodsOrClaims() {
		return false
	}
	n := s.NodeOf(c.Name)
	if n != nil {
		if _, out := q.Claims[n.Name]; out || slices.ContainsFunc(s.PodsOn(n.Name), s.IsQuarantined) {
			return true
		}
	}
	_, out := q.Claims[c.Name]
	return out || slices.ContainsFunc(c.MadeFor, func(m MadeFor) bool { return s.lookups.quarantinedOwners[m.Owner] })
}

// QuarantinedPods lists the pods that would be pending were their class not left out.
func (s *Snapshot) QuarantinedPods() []*Pod { return s.lookups.quarantinedPods }

// PodsSeekingPlace lists the pods for which a place is looked for.
func (s *Snapshot) PodsSeekingPlace() []*Pod { return slices.Concat(s.Pending(), s.PodsBetweenNodes()) }

// ClassesSeekingPlace lists the classes of the pods for which a place is looked for, by key. Those whose pods came last
// are last.
func (s *Snapshot) ClassesSeekingPlace() []string {
	since := make(map[string]time.Time)
	for _, p := range s.PodsSeekingPlace() {
		since[p.Class.Key] = Earlier(since[p.Class.Key], s.SeekingSince(p))
	}
	return slices.SortedFunc(maps.Keys(since), func(a, b string) int {
		return cmp.Or(since[a].Compare(since[b]), strings.Compare(a, b))
	})
}

// SeekingSince is since when a place is looked for, as far as it is known.
func (s *Snapshot) SeekingSince(p *Pod) time.Time { return cmp.Or(s.PendingSince(p), p.Created, s.Now) }
