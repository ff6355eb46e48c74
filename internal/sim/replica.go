package sim

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/actuate"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/ingest/apiserver"
	"github.com/tenon-sh/tenon/internal/loop"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/validate"
)

// replica is one process of the program that believes to hold the lease.
type replica struct {
	sim     *Sim
	number  int
	started time.Time
	ctx     context.Context
	cancel  context.CancelFunc
	book    *ingest.Book
	loop    *loop.Loop

	cache   [kinds]map[string]client.Object
	streams [kinds]stream
	daemons []types.UID // DaemonSets that it knows of

	acts     []*act
	current  *act // the command that is running right now
	dead     bool
	stale    bool      // another replica has taken over, and this one has not noticed
	lease    time.Time // when a stale replica's lease runs out, by its own clock
	ready    bool      // it has caught up, and plans
	planning bool
	changed  bool // something has changed while it was planning
	passes   int  // which of the passes that were asked for is the next
	lastPass time.Time
	breath   time.Duration
	// seen is what its last plan was made from.
	seen *cluster.Snapshot
	// found is what its last search for nodes that can be saved has found.
	found *disrupt.Proposal
	// departs are the moves of which its last plan lets nodes go.
	departs map[string]bool
	// opens are the nodes that its last plan opens.
	opens map[string]bool
	// sent is when a plan last sent pods that wait for a place to a host.
	sent map[string]time.Time
	// holdsOrphans says that the last plan leaves machines alone which nobody claims, because there may have been many.
	holdsOrphans bool
	// skew is by how much the clock of its machine is wrong; clock is what it makes of it and of the API server's
	// answers.
	skew  time.Duration
	clock *apiserver.ServerClock
}

// newClock is the replica's clock: that of its machine, which may be wrong, and a steady one.
func (r *replica) newClock() *apiserver.ServerClock {
	return &apiserver.ServerClock{
		Wall:   func() time.Time { return r.sim.clock.now.Add(r.skew) },
		Steady: r.steady,
	}
}

// steady is how long the replica has been there.
func (r *replica) steady() time.Duration { return r.sim.clock.now.Sub(r.started) }

// hears is an answer of the API server to a request that was sent then: it says what time it is.
func (r *replica) hears(sent time.Duration) { r.clock.Observe(r.sim.clock.seconds(), sent, r.steady()) }

func (r *replica) String() string { return fmt.Sprintf("tenon-%d", r.number) }

// act is a command that is being carried out: its coroutine hands back control whenever it waits.
type act struct {
	command command.Command
	*coroutine
	stopped bool
	// turn is the how manyth of all it is: whoever decided on more than one thing at the same moment decided on them in
	// this order.
	turn int
	// What the replica knew when it began: claims that a stale replica had made, and claims that were on their way out.
	began          time.Time
	knows, leaving map[types.UID]bool
	// tenants are the pods on the node of a machine that is to be ended.
	tenants map[string]bool
}

// start begins a replica: its book is filled from a list of everything.
func (s *Sim) start() *replica {
	s.started++
	if s.started > 1 {
		s.judge.unused.began = append(s.judge.unused.began, s.clock.now)
	}
	r := &replica{sim: s, number: s.started, started: s.clock.now, sent: make(map[string]time.Time),
		breath: pick(s.clock, []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond})}
	r.skew, r.clock = s.adversaryState.skew, r.newClock()
	if err := r.clock.Settle(func() error { r.hears(r.steady()); return nil }); err != nil {
		panic(err) // it is always answered
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.book = ingest.New(r.clock.Now, validate.Labels{}, []cluster.ClassRef{{Group: classGroup, Kind: classKind}})
	r.loop = &loop.Loop{
		World: world{r}, Observer: observer{r}, Policy: s.policy, Wait: r.wait, Now: r.clock.Now, IsLeader: r.leads,
		Planner: s.planner(),
		Actor: &actuate.Actor{
			Objects: actuate.Objects{Client: api{r: r}, Live: api{r: r, live: true}, Wait: r.wait},
			Cloud:   cloudClient{r}, Now: r.clock.Now, Names: r.book.Names,
		},
	}
	r.book.NoteNodeClassVersion(theClass(), fmt.Sprint(s.cloud.image))
	r.book.SetNodeClass(cluster.ClassRef{Group: classGroup, Kind: classKind, Name: className},
		cluster.NodeClassState{Ready: true, Generation: 1})
	s.tellSystem(r)
	r.hearOfPriorities()
	for _, ds := range s.daemons {
		r.book.SetDaemon(ds.DeepCopy())
		r.daemons = append(r.daemons, ds.UID)
	}
	for _, k := range []kind{sets, guards, pools, claims, nodes, pods} {
		r.cache[k] = make(map[string]client.Object)
		r.streams[k] = stream{r: r, kind: k}
		r.streams[k].relist()
	}
	s.replicas = append(s.replicas, r)
	s.trace.note("%s: starts", r)
	r.catchUp()
	return r
}

// catchUp has the replica wait until it knows the claims and nodes that there are; then it plans for the first time.
func (r *replica) catchUp() {
	a := &act{began: r.sim.clock.now}
	a.coroutine = r.sim.coroutine(func() {
		if err := r.book.CatchUp(r.ctx, api{r: r, live: true}, r.wait); err != nil {
			r.sim.trace.note("%s: %v", r, err)
		}
		if !r.dead {
			r.ready = true
			r.passAt(r.sim.clock.now)
		}
	})
	r.acts = append(r.acts, a)
	r.sim.clock.after(r.sim.clock.between(0, 5*time.Millisecond), func() { r.run(a) })
}

// kill ends a replica between two instants; what its commands had sent may arrive or not.
func (r *replica) kill() {
	if r.dead {
		return
	}
	r.sim.trace.note("%s: dies with %d commands under way", r, len(r.acts))
	r.dead = true
	r.cancel()
	for _, a := range r.acts {
		r.current = a
		a.stop()
		r.current = nil
	}
	r.acts = nil
	r.sim.replicas = slices.DeleteFunc(r.sim.replicas, func(o *replica) bool { return o == r })
}

// poke has the replica plan soon, if something has changed.
func (r *replica) poke() {
	select {
	case <-r.book.Changed():
	default:
		return
	}
	if r.planning {
		r.changed = true
		return
	}
	r.passAt(r.lastPass.Add(r.breath))
}

// passAt has the replica plan at a time, or now if that has passed, instead of when it would have before.
func (r *replica) passAt(t time.Time) {
	r.passes++
	mine := r.passes
	r.sim.clock.at(t, func() {
		if mine == r.passes && !r.dead {
			r.pass()
		}
	})
}

// leads reports whether the replica may take itself for the leader.
func (r *replica) leads() bool { return !r.stale || r.sim.clock.now.Before(r.lease) }

// pass is one turn of the loop.
func (r *replica) pass() {
	if !r.ready {
		return
	}
	if r.planning { // time passes while a plan is made
		r.changed = true
		return
	}
	if !r.leads() {
		return // it ends as soon as it looks at the lease
	}
	r.book.FetchCatalogs(r.ctx, r.sim.cloud)
	if _, err := r.book.RefreshInventory(r.ctx, register{cloudClient{r}}); err != nil {
		r.sim.trace.note("%s: %v", r, err)
	}
	if err := r.book.AskDueDrift(r.ctx, driftAnswers{r}, api{r: r}); err != nil {
		r.sim.trace.note("%s: %v", r, err)
	}
	r.planning, r.changed = true, false
	p := r.loop.Pass(r.begin)
	r.planning, r.lastPass = false, r.sim.clock.now
	if r.dead {
		return
	}
	r.sim.passed(r, &p)
	if r.changed {
		r.passAt(r.sim.clock.now.Add(r.breath))
		return
	}
	r.passAt(r.sim.clock.now.Add(max(r.breath, loop.WaitUntilNext(p.WakeAt, r.clock.Now()))))
	r.poke()
}

// begin begins to carry a command out.
func (r *replica) begin(s *cluster.Snapshot, c command.Command) {
	if r.dead {
		return
	}
	r.sim.judge.beginning(r, c)
	r.sim.begun++
	a := &act{command: c, began: r.sim.clock.now, turn: r.sim.begun}
	a.knows, a.leaving = r.sim.judge.known(r)
	a.tenants = r.tenantsOf(c)
	a.coroutine = r.sim.coroutine(func() { r.loop.Execute(r.ctx, s, c) })
	r.acts = append(r.acts, a)
	r.sim.clock.after(r.sim.clock.between(0, 5*time.Millisecond), func() { r.run(a) })
}

// run lets a command go on until it waits again.
func (r *replica) run(a *act) {
	if r.dead || a.stopped {
		return
	}
	r.current = a
	d, more := a.resume()
	r.current = nil
	if !more || d == done {
		if more {
			r.sim.idle = append(r.sim.idle, a.coroutine)
		}
		r.acts = slices.DeleteFunc(r.acts, func(o *act) bool { return o == a })
		r.poke()
		return
	}
	r.sim.clock.after(d, func() { r.run(a) })
}

// pause lets time pass for the running command; false if the replica has died meanwhile.
func (r *replica) pause(d time.Duration) bool {
	a := r.current
	if a.stopped {
		return false
	}
	if !a.yield(d) {
		a.stopped = true
		return false
	}
	return true
}

func (r *replica) wait(ctx context.Context, d time.Duration) error {
	if !r.pause(d) {
		return context.Canceled
	}
	return ctx.Err()
}

// world is the replica's book as the loop sees it. Planning takes time, in which other things happen: asking for the
// revision is when the loop would notice.
type world struct{ r *replica }

func (w world) Changed() <-chan struct{}        { return w.r.book.Changed() }
func (w world) Snapshot() *cluster.Snapshot     { return w.r.book.Snapshot() }
func (w world) Begin(c command.Command)         { w.r.book.Begin(c) }
func (w world) Record(o command.Outcome)        { w.r.book.Record(o) }
func (w world) Abandon(c command.Command)       { w.r.book.Abandon(c) }
func (w world) Planned(at time.Time)            { w.r.book.Planned(at) }
func (w world) Quarantine(q cluster.Quarantine) { w.r.book.Quarantine(q) }
func (w world) Rev() uint64 {
	s := w.r.sim
	if s.depth < 2 && s.strikes("slowPlans", s.rates.slowPlans) {
		s.depth++
		s.clock.runUntil(s.clock.now.Add(s.clock.between(0, 2*time.Second)), s.over)
		s.depth--
	}
	return w.r.book.Rev()
}

// remember notes what the judge may ask about a plan.
func (r *replica) remember(s *cluster.Snapshot, p *plan.Plan) {
	r.seen, r.departs, r.opens = s, make(map[string]bool), make(map[string]bool)
	r.holdsOrphans = p.Orphans.TooMany && p.Orphans.Held > 0
	for _, c := range p.Commands {
		switch c := c.(type) {
		case command.Open:
			r.opens[c.Node] = true
		case command.DeleteClaim:
			if claim := s.Claim(c.Claim); claim != nil && claim.Move != "" {
				r.departs[claim.Move] = true
			}
		}
	}
	for i := range p.Placement.Assigned {
		r.sent[p.Placement.Assigned[i].Host] = r.sim.clock.now
	}
}

// observer writes down what the replica does.
type observer struct{ r *replica }

func (observer) Planning() {}

func (o observer) Planned(s *cluster.Snapshot, p *plan.Plan, _ time.Duration) {
	o.r.remember(s, p)
	for _, c := range p.Commands {
		o.r.sim.trace.note("%s: %s", o.r, c.Key())
	}
	for _, g := range p.GivenUp {
		o.r.sim.trace.note("%s: gives up %s: %s", o.r, g.ID, g.BlockReason)
	}
	for _, g := range p.NotBegun {
		o.r.sim.trace.note("%s: does not begin %s: %s", o.r, g.ID, g.BlockReason)
	}
}

func (o observer) Searched(_ *cluster.Snapshot, found *disrupt.Proposal, _ time.Duration) {
	o.r.found = found
	for i := range found.Moves {
		o.r.sim.trace.note("%s: found %s", o.r, found.Moves[i].ID)
	}
}

func (o observer) Done(_ *cluster.Snapshot, out command.Outcome, _ time.Duration) {
	if out.Err == nil {
		o.r.sim.seen[reflect.TypeOf(out.Command).Name()]++
		o.r.sim.countMove(out.Command)
	} else {
		o.r.sim.trace.note("%s: %s failed: %.150s", o.r, out.Command.Key(), out.Err)
	}
}
