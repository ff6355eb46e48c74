// Package lifecycle says what a NodeClaim needs next: one claim, its node and the time give the next commands.
//
// Floor 2: pure. It remembers nothing; everything it needs to know is in the snapshot, so it can pick up after a crash
// at any point.
package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
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

func do(c ...command.Command) Step { return Step{Commands: c} }

func (s *Step) do(c command.Command) { s.Commands = append(s.Commands, c) }

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
	w := &walk{s: s, set: set, queue: newQueue(s)}
	var out Step
	for _, c := range s.Claims {
		if _, held := s.Quarantine.Claims[c.Name]; !held {
			out.add(w.next(c))
		}
	}
	return out
}

// walk is one look at all claims. It keeps what they have in common.
type walk struct {
	s     *cluster.Snapshot
	set   Settings
	queue *queue
	// twins counts the nodes by provider id; nil until somebody asks.
	twins map[string]int
}

// turn is the part of a walk that is about one claim.
type turn struct {
	*walk
	c *cluster.Claim
	n *cluster.Node
	Step
	// tell gathers what is to be written on the claim, so that it is written once.
	tell command.SetClaim
}

func (w *walk) next(c *cluster.Claim) Step {
	t := &turn{walk: w, c: c, n: w.s.NodeOf(c.Name), tell: command.SetClaim{Claim: c.Name}}
	t.decide()
	if len(t.tell.Conditions) > 0 || !t.tell.LastPodEvent.IsZero() || !t.tell.Deadline.IsZero() {
		t.Commands = slices.Insert(t.Commands, 0, command.Command(t.tell))
	}
	return t.Step
}

func (t *turn) decide() {
	c, n := t.c, t.n
	switch {
	case c.Expected:
	case !c.Deleting.IsZero():
		t.end()
	case n != nil && !n.Deleting.IsZero():
		t.remove(command.Requested, fmt.Sprintf("node %s was deleted", n.Name))
	case t.expired():
		t.remove(command.Expired, fmt.Sprintf("it is older than its expireAfter of %s", c.Expire.For))
	case !c.Is(cluster.Launched) && len(c.Problems) > 0:
		t.refuse()
	case !c.Finalized:
		t.do(command.Adopt{Claim: c.Name})
	case !c.Is(cluster.Launched):
		t.launch()
	case lost(t.s, c, n):
		t.remove(command.InstanceMissing, fmt.Sprintf("the cloud no longer runs its instance %s", c.ProviderID))
	case !c.Is(cluster.Registered) && c.Interruption.Urgent(): // it is not opened any more
	case !c.Is(cluster.Registered):
		t.register()
	case n == nil:
		t.missing()
	case !n.Finalized, n.HasTaint(cluster.UnregisteredTaint, cluster.NoExecute):
		t.do(command.Register{Claim: c.Name, Node: n.Name}) // its kubelet has made it anew
	case c.NodeName != n.Name:
		t.do(command.Register{Claim: c.Name, Node: n.Name}) // a launch that was given up for lost has brought it another machine
	default:
		t.live()
	}
}

// missing ends a claim whose node was removed by force: nobody will bring it back, and its instance must not run on. A node
// that has just registered may be one that our watch has yet to show.
func (t *turn) missing() {
	if t.c.NodeMayCome(t.s.Now) {
		t.wake(t.c.Condition(cluster.Registered).Since.Add(cluster.NodeLag))
		return
	}
	t.remove(command.NodeMissing, fmt.Sprintf("its node %s was removed", t.c.NodeName))
	d := t.Commands[0].(command.DeleteClaim)
	d.Missing, d.ProviderID = t.unknownNode(), t.c.ProviderID
	t.Commands[0] = d
}

// expired reports whether the claim has reached the end of its life, and sees to it that the moment is not missed.
func (t *turn) expired() bool {
	if t.c.Expire.Never || t.c.Expire.For <= 0 {
		return false
	}
	at := t.c.Created.Add(t.c.Expire.For)
	if t.s.Now.Before(at) {
		t.wake(at)
		return false
	}
	return true
}

// remove begins the end of the claim.
func (t *turn) remove(why command.Reason, message string) {
	d := command.DeleteClaim{Claim: t.c.Name, UID: t.c.UID, Reason: why, Message: message}
	if t.n != nil {
		d.Node = t.n.Name
	}
	t.Step = Step{Commands: []command.Command{d}, Notes: t.Notes}
	t.tell = command.SetClaim{Claim: t.c.Name}
}

// say has a condition written unless the claim carries it already. It reports whether the claim does.
func (t *turn) say(kind string, status cluster.ConditionStatus, reason, message string) bool {
	told := t.c.Condition(kind)
	if told.Status == status && told.Reason == reason && told.Message == message {
		return true
	}
	t.tell.Conditions = append(t.tell.Conditions, cluster.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	return false
}

func (t *turn) timeouts() cluster.Timeouts { return t.set.For(t.s.Pool(t.c.Pool)) }

// For are the pool's own timeouts, and what the settings say where it has none or there is no pool (nil).
func (s Settings) For(p *cluster.Pool) cluster.Timeouts {
	out := cluster.Timeouts{Launch: s.LaunchTimeout, Registration: s.RegistrationTimeout, Initialization: s.InitializationTimeout}
	if p == nil {
		return out
	}
	for _, x := range []struct{ own, use *time.Duration }{
		{&p.Timeouts.Launch, &out.Launch}, {&p.Timeouts.Registration, &out.Registration}, {&p.Timeouts.Initialization, &out.Initialization},
	} {
		if *x.own > 0 {
			*x.use = *x.own
		}
	}
	return out
}

// lagFor is by how much the cloud's list may lag behind: what is younger may be missing from it.
const lagFor = 30 * time.Second

// lost reports whether the claim's instance has ended without our doing: the cloud does not list it, and no kubelet speaks
// for it.
func lost(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	if s.Census == nil || c.ProviderID == "" || n != nil && n.Ready {
		return false
	}
	launched := c.Condition(cluster.Launched).Since
	return !s.Census.At.Before(launched.Add(lagFor)) && !s.Census.Has(c.ProviderID)
}
