// Package lifecycle says what a NodeClaim needs next: one claim, its node and the time give the next commands.
//
// Floor 2: pure. It remembers nothing; everything it needs to know is in the snapshot, so it can pick up after a crash
// at any point.
package lifecycle

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/render"
)

// Settings are how long a node may take to come.
type Settings struct {
	LaunchTimeout       time.Duration
	RegistrationTimeout time.Duration
	// InitializationTimeout is how long a registered node may take to be ready for pods; zero for as long as it likes.
	InitializationTimeout time.Duration
}

// Step is what to do now, and when to look again if nothing happens before.
type Step struct {
	Commands []command.Command
	WakeAt   time.Time
	// Notes are what stands in the way, for people.
	Notes []cluster.Note
}

func stepOf(c ...command.Command) Step { return Step{Commands: c} }

func (s *Step) emit(c command.Command) { s.Commands = append(s.Commands, c) }

func (s *Step) wake(at time.Time) { s.WakeAt = cluster.Earlier(s.WakeAt, at) }

// warn adds a note of something that should not be.
func (s *Step) warn(n cluster.Note) {
	n.Warning = true
	s.Notes = append(s.Notes, n)
}

func (s *Step) add(t Step) {
	s.Commands = append(s.Commands, t.Commands...)
	s.Notes = append(s.Notes, t.Notes...)
	s.wake(t.WakeAt)
}

// Next moves every claim a step further.
func Next(s *cluster.Snapshot, set Settings) Step {
	w := &claimsPass{s: s, set: set, queue: newLaunchQueue(s)}
	var out Step
	for _, c := range s.Claims {
		if _, held := s.Quarantine.Claims[c.Name]; !held {
			out.add(w.next(c))
		}
	}
	return out
}

// claimsPass is one look at all claims. It keeps what they have in common.
type claimsPass struct {
	s     *cluster.Snapshot
	set   Settings
	queue *launchQueue
	// nodesByProvider counts the nodes by provider id; nil until somebody asks.
	nodesByProvider map[string]int
}

// claimStep is the part of a walk that is about one claim.
type claimStep struct {
	*claimsPass
	claim *cluster.Claim
	node  *cluster.Node
	Step
	// status gathers what is to be written on the claim, so that it is written once.
	status command.SetClaim
}

func (w *claimsPass) next(c *cluster.Claim) Step {
	step := &claimStep{claimsPass: w, claim: c, node: w.s.NodeOf(c.Name), status: command.SetClaim{Claim: c.Name}}
	step.decide()
	if len(step.status.Conditions) > 0 || !step.status.LastPodEvent.IsZero() || !step.status.Deadline.IsZero() {
		step.Commands = slices.Insert(step.Commands, 0, command.Command(step.status))
	}
	return step.Step
}

func (st *claimStep) decide() {
	c, n := st.claim, st.node
	switch {
	case c.Expected:
	case !c.Deleting.IsZero():
		st.endClaim()
	case n != nil && !n.Deleting.IsZero():
		st.deleteClaim(command.Requested, reason.Of(reason.NodeDeleted, n.Name))
	case st.checkExpired():
		st.deleteClaim(command.Expired, reason.Of(reason.TooOld, c.ExpireAfter.For))
	case !c.Is(cluster.Launched) && len(c.Problems) > 0:
		st.tellInvalid()
	case !c.Finalized:
		st.emit(command.Adopt{Claim: c.Name})
	case !c.Is(cluster.Launched):
		st.launch()
	case isInstanceLost(st.s, c, n):
		st.deleteClaim(command.InstanceMissing, reason.Of(reason.InstanceGone, c.ProviderID))
	case !c.Is(cluster.Registered) && c.Interruption.IsUrgent(): // it is not opened any more
	case !c.Is(cluster.Registered):
		st.register()
	case n == nil:
		st.endMissing()
	case !n.Finalized, n.HasTaint(cluster.UnregisteredTaint, cluster.NoExecute):
		st.emit(command.Register{Claim: c.Name, Node: n.Name}) // its kubelet has made it anew
	case c.NodeName != n.Name:
		// a launch that was given up for lost has brought it another machine
		st.emit(command.Register{Claim: c.Name, Node: n.Name})
	default:
		st.maintain()
	}
}

// endMissing ends a claim whose node was removed by force: nobody will bring it back, and its instance must not run on.
// A node that has just registered may be one that our watch has yet to show.
func (st *claimStep) endMissing() {
	if st.claim.NodeMayCome(st.s.Now) {
		st.wake(st.claim.Condition(cluster.Registered).Since.Add(cluster.NodeLag))
		return
	}
	st.deleteClaim(command.NodeMissing, reason.Of(reason.NodeRemoved, st.claim.NodeName))
	d := st.Commands[0].(command.DeleteClaim)
	d.Missing, d.ProviderID = st.unknownNode(), st.claim.ProviderID
	st.Commands[0] = d
}

// checkExpired reports whether the claim has reached the end of its life, and sees to it that the moment is not missed.
func (st *claimStep) checkExpired() bool {
	if st.claim.ExpireAfter.Never || st.claim.ExpireAfter.For <= 0 {
		return false
	}
	at := st.claim.Created.Add(st.claim.ExpireAfter.For)
	if st.s.Now.Before(at) {
		st.wake(at)
		return false
	}
	return true
}

// deleteClaim begins the end of the claim.
func (st *claimStep) deleteClaim(why command.Reason, text reason.Text) {
	d := command.DeleteClaim{Claim: st.claim.Name, UID: st.claim.UID, Reason: why, Text: text}
	if st.node != nil {
		d.Node = st.node.Name
	}
	st.Step = Step{Commands: []command.Command{d}, Notes: st.Notes}
	st.status = command.SetClaim{Claim: st.claim.Name}
}

// setCondition has a condition written unless the claim carries it already. It reports whether the claim does.
func (st *claimStep) setCondition(kind string, status cluster.ConditionStatus, why string, text reason.Text) bool {
	want := command.Condition{Type: kind, Status: status, Reason: why, Text: text}
	if render.Says(st.claim.Condition(kind), want) {
		return true
	}
	st.status.Conditions = append(st.status.Conditions, want)
	return false
}

func (st *claimStep) timeouts() cluster.Timeouts { return st.set.For(st.s.Pool(st.claim.Pool)) }

// For are the pool's own timeouts, and what the settings say where it has none or there is no pool (nil).
func (s Settings) For(p *cluster.Pool) cluster.Timeouts {
	out := cluster.Timeouts{Launch: s.LaunchTimeout, Registration: s.RegistrationTimeout,
		Initialization: s.InitializationTimeout}
	if p == nil {
		return out
	}
	for _, x := range []struct{ own, use *time.Duration }{
		{&p.Timeouts.Launch, &out.Launch}, {&p.Timeouts.Registration, &out.Registration}, {&p.Timeouts.Initialization,
			&out.Initialization},
	} {
		if *x.own > 0 {
			*x.use = *x.own
		}
	}
	return out
}

// lagFor is by how much the cloud's list may lag behind: what is younger may be missing from it.
const lagFor = 30 * time.Second

// isInstanceLost reports whether the claim's instance has ended without our doing: the cloud does not list it, and no
// kubelet speaks for it.
func isInstanceLost(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	if s.Inventory == nil || c.ProviderID == "" || n != nil && n.Ready {
		return false
	}
	launched := c.Condition(cluster.Launched).Since
	return !s.Inventory.At.Before(launched.Add(lagFor)) && !s.Inventory.Has(c.ProviderID)
}
