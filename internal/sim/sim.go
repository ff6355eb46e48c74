package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/lifecycle"
	"github.com/tenon-sh/tenon/internal/plan"
)

const (
	// patience is how long, after the last fault, the cluster may take to come to rest; quiet is how long nothing must
	// be asked for then.
	patience = 40 * time.Minute
	quiet    = 50 * time.Second
	// restless is how long before the end of that patience a pod may have lacked a place.
	restless = 10 * time.Minute
	// evictionsPerHour is how often each pod is evicted to save money within an hour, on average, unless people say
	// otherwise.
	evictionsPerHour = 2
	// comesToRest is a promise.
	comesToRest = "a quiet cluster gives an empty plan"
)

// Sim is one run: a world, the program in it, and what goes wrong.
type Sim struct {
	seed  uint64
	clock *clock
	trace *trace
	store *store
	cloud *cloud
	judge *judge
	rates faultRates
	// mistakes are what the planner fails on.
	mistakes mistakes
	policy   plan.Policy

	replicas []*replica
	idle     []*coroutine   // that wait for work
	started  int            // replicas so far
	begun    int            // commands so far
	made     int            // pods so far
	byHand   int            // claims that people have made so far
	fenced   []string       // nodes that people have fenced
	agents   []*agent       // programs that make nodes useless
	seen     map[string]int // what has happened how often
	depth    int            // how many plans are being made while others are
	// ticks are when windows of budgets open, by schedule.
	ticks map[string]ticks

	// What the cluster's own controllers remember.
	scheduling bool
	assumed    map[types.UID]string
	asked      struct{ sets, guards, collect, daemons bool }
	daemons    []*appsv1.DaemonSet

	// deletesNodes is a cloud controller that deletes Nodes whose machine is gone; slowPatches sends every patch as
	// text.
	deletesNodes, slowPatches bool
	adversaryState            adversaryState
	forgiven                  forgivenCounts

	busyAt   time.Time // when a plan last asked for something
	busyWith string
	failure  *Failure
}

// Failure is a promise that was broken.
type Failure struct {
	Seed     uint64
	Property string
	Detail   string
	Trace    string
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d: %s: %s\n%s\nreplay: go test ./internal/sim -run TestSeed -seed %d -v", f.Seed,
		f.Property, f.Detail, f.Trace, f.Seed)
}

// Result is what a run came to.
type Result struct {
	Failure *Failure // nil if all is well
	Hash    uint64   // of the whole history
	Events  int
	Seen    map[string]int // commands carried out and faults, by kind
	Time    time.Duration  // virtual
}

// Options of a run.
type Options struct {
	// SlowPatches sends every patch as text, instead of some.
	SlowPatches bool
	// Adversary is the name of the only one that comes; empty for any.
	Adversary string
	// Tell gets every line of the history.
	Tell func(string)
}

// Run plays one seed to its end.
func Run(seed uint64, o Options) Result {
	s := newSim(seed, o)
	begin := s.clock.now
	s.judge.unused.on, s.judge.unused.moving = true, true
	faultTime := s.prepare()
	s.start()
	s.clock.after(time.Second, s.judge.unused.watch)
	s.clock.runUntil(begin.Add(faultTime), s.over)
	if s.failure == nil {
		s.settle()
	}
	for len(s.replicas) > 0 { // their coroutines would stay otherwise
		s.replicas[0].kill()
	}
	for _, c := range s.idle {
		c.stop()
	}
	return Result{Failure: s.failure, Hash: s.trace.hash, Events: s.trace.count, Seen: s.seen,
		Time: s.clock.now.Sub(begin)}
}

func newSim(seed uint64, o Options) *Sim {
	c := newClock(seed)
	s := &Sim{seed: seed, clock: c, trace: newTrace(c), store: newStore(c), assumed: make(map[types.UID]string),
		slowPatches: o.SlowPatches, seen: make(map[string]int),
		ticks: make(map[string]ticks), adversaryState: adversaryState{random: rand.New(rand.NewPCG(seed, 0xf0e)),
			only: o.Adversary}}
	s.trace.tell = o.Tell
	s.store.watch = s.announce
	s.judge = newJudge(s)
	s.cloud = newCloud(s)
	s.policy = plan.Policy{
		BatchIdle: time.Second, BatchMax: 10 * time.Second,
		Lifecycle: lifecycle.Settings{LaunchTimeout: 2 * time.Minute, RegistrationTimeout: 4 * time.Minute},
	}
	s.choosePolicy()
	return s
}

func (s *Sim) over() bool { return s.failure != nil }

// fail notes the first broken promise; the run ends there.
func (s *Sim) fail(property, format string, args ...any) {
	if s.failure != nil {
		return
	}
	s.failure = &Failure{Seed: s.seed, Property: property, Detail: fmt.Sprintf(format, args...), Trace: s.trace.last()}
}

// passed notes whether a plan asked for something.
func (s *Sim) passed(_ *replica, p *plan.Plan) {
	s.countDaemons(p)
	if len(p.Commands) == 0 {
		return
	}
	s.busyAt = s.clock.now
	var keys []string
	for _, c := range p.Commands {
		keys = append(keys, c.Key())
	}
	s.busyWith = strings.Join(keys, " ")
}

// settle ends the faults and waits until the cluster has come to rest in good order.
func (s *Sim) settle() {
	s.calm()
	s.judge.asks(comesToRest)
	deadline := s.clock.now.Add(patience)
	for s.failure == nil {
		s.clock.runUntil(s.clock.now.Add(10*time.Second), s.over)
		still := s.clock.now.Sub(s.busyAt) >= quiet
		disorder := s.firstProblem()
		if still && disorder == "" {
			s.forgiven.count(s.seen)
			return
		}
		if s.clock.now.Before(deadline) {
			continue
		}
		if s.bound() {
			deadline = s.clock.now.Add(patience)
			continue
		}
		if disorder != "" {
			s.fail("order in the end", "%s", disorder)
		} else {
			s.fail(comesToRest, "the last plan asked for %s", s.busyWith)
		}
	}
}

// bound bounds how often pods are evicted to save money, as the program does unless it is told otherwise, and reports
// whether that is worth another wait.
//
// Each move saves money if pods go where they were meant to. Where kube-scheduler puts them elsewhere some find no room
// and get a node of their own, which the next move does away with, and so on: that this ends is what the bound on
// evictions is for, and whoever has lifted it gets what was asked for. If no pod has lacked a place, moves that don't
// come to an end are no such thing.
func (s *Sim) bound() bool {
	if s.policy.Disrupt.EvictionsPerHour > 0 || s.clock.now.Sub(s.judge.provisioned) > restless {
		return false
	}
	s.judge.excused(comesToRest, []excuseReason{is("evictions were not bounded", true)})
	s.trace.note("someone: bounds evictions again")
	s.policy.Disrupt.EvictionsPerHour = evictionsPerHour
	for _, r := range s.replicas {
		r.loop.Policy = s.policy
	}
	return true
}
