package loop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/validate"
)

func noon(d time.Duration) time.Time { return time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).Add(d) }

// seen is a snapshot of which nothing counts but its revisions and its time.
func seen(rev, supply uint64, at time.Duration) *cluster.Snapshot {
	return (&cluster.Snapshot{Rev: rev, SupplyRev: supply, Now: noon(at)}).Seal()
}

// after says how long after the snapshot the search scheduler wants to search.
func after(sched *searchScheduler, s *cluster.Snapshot) string {
	at := sched.due(s)
	if at.IsZero() {
		return "never"
	}
	return at.Sub(s.Now).String()
}

// came has the search scheduler take in a search on the snapshot, and a plan that made of it what the commands say.
func came(sched *searchScheduler, s *cluster.Snapshot, took time.Duration, proposal disrupt.Proposal,
	commands ...command.Command) {
	sched.running = true
	sched.done(searchResult{snapshot: s, proposal: proposal}, took)
	f := sched.take()
	sched.noteUsed(f, &plan.Plan{Commands: commands}, s.Now.Add(took))
}

func TestDeskSearchesIfSomethingMatters(t *testing.T) {
	s := &searchScheduler{}
	if got := after(s, seen(1, 1, 0)); got != "1s" {
		t.Fatalf("the first search: %s", got)
	}
	s.running = true
	if got := after(s, seen(9, 9, 0)); got != "never" {
		t.Errorf("while one is under way: %s", got)
	}
	came(s, seen(9, 9, 0), 0, disrupt.Proposal{})
	for _, c := range []struct {
		what string
		s    *cluster.Snapshot
		want string
	}{
		{"nothing has changed", seen(9, 9, time.Hour), "never"},
		{"nothing that matters", seen(20, 9, time.Minute), "never"},
		{"something else, long ago", seen(20, 9, 11*time.Minute), "0s"},
		{"room", seen(10, 10, time.Minute), "1s"},
		{"room, at once", seen(10, 10, 0), "1s"},
		{"what only matters here", (&cluster.Snapshot{Rev: 10, DisruptionRev: 10, Now: noon(time.Minute)}).Seal(),
			"1s"},
	} {
		copied := *s
		if got := after(&copied, c.s); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// What comes in quick succession shares a search; what never ends does not put it off for ever.
func TestDeskWaitsForCalm(t *testing.T) {
	s := &searchScheduler{}
	came(s, seen(1, 1, 0), 0, disrupt.Proposal{})
	got := ""
	for i := range 12 { // something happens every 900 ms from a minute on
		at := time.Minute + time.Duration(i)*900*time.Millisecond
		got += " " + s.due(seen(uint64(i)+2, uint64(i)+2, at)).Sub(noon(time.Minute)).String()
	}
	if want := " 1s 1.9s 2.8s 3.7s 4.6s 5.5s 6.4s 7.3s 8.2s 9.1s 10s 10s"; got != want {
		t.Errorf("due%s, want%s", got, want)
	}
	// What a search has not seen begins a new wait.
	came(s, seen(5, 5, 70*time.Second), 0, disrupt.Proposal{})
	if got := s.due(seen(20, 20, 75*time.Second)).Sub(noon(0)); got != 76*time.Second {
		t.Errorf("due at %s, want 1m16s", got)
	}
	if got := s.due(seen(21, 21, 79500*time.Millisecond)).Sub(noon(0)); got != 80*time.Second {
		t.Errorf("due at %s, want 1m20s: ten seconds after the last search looked", got)
	}
}

func TestDeskWakesWhenTheAnswerMayChange(t *testing.T) {
	s := &searchScheduler{}
	came(s, seen(9, 9, 0), 0, disrupt.Proposal{WakeAt: noon(time.Minute)})
	if got := after(s, seen(9, 9, 10*time.Second)); got != "50s" {
		t.Errorf("due in %s, want 50s", got)
	}
	if got := after(s, seen(9, 9, 2*time.Minute)); got != "-1m0s" {
		t.Errorf("due in %s, want -1m0s", got)
	}
}

func TestDeskRestsForThreeTimesItsWork(t *testing.T) {
	s := &searchScheduler{}
	came(s, seen(9, 9, 0), 10*time.Second, disrupt.Proposal{})
	if got := after(s, seen(12, 12, 10*time.Second)); got != "30s" { // longer than it takes to be calm
		t.Errorf("due in %s, want 30s", got)
	}
}

// Pods that come and go all the time, and nothing to save: the search scheduler searches less and less often.
func TestDeskCalmsDown(t *testing.T) {
	sched := &searchScheduler{}
	now, searches := time.Duration(0), 0
	for rev := uint64(1); now < 10*time.Minute; rev++ {
		s := seen(rev, rev, now)
		if at := sched.due(s); !at.IsZero() && !at.After(s.Now) {
			searches++
			came(sched, s, 0, disrupt.Proposal{})
		}
		now += 100 * time.Millisecond
	}
	if searches < 55 || searches > 65 { // every ten seconds
		t.Errorf("%d searches in ten minutes", searches)
	}
}

func TestDeskGoesOnUntilNothingIsFound(t *testing.T) {
	s := &searchScheduler{emptySearches: 7}
	move := disrupt.Proposal{Moves: []disrupt.Move{{ID: "m"}}}
	came(s, seen(9, 9, 0), 0, move, command.Fence{Node: "n", Move: "m"})
	if got := after(s, seen(9, 9, 0)); got != "500ms" {
		t.Errorf("after a move was begun: %s, want 500ms", got)
	}
	// A fence of something else, as for drift, does not mean that the search was of use.
	waits := ""
	for i := range 8 {
		now := time.Duration(i) * time.Hour
		came(s, seen(9, 9, now), 0, move, command.Fence{Node: "n", Move: "drifted"})
		waits += " " + after(s, seen(9, 9, now))
	}
	if want := " 10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s"; waits != want {
		t.Errorf("what can't be begun is looked for again after%s, want%s", waits, want)
	}
	came(s, seen(9, 9, 9*time.Hour), 0, disrupt.Proposal{})
	if got := after(s, seen(9, 9, 9*time.Hour)); got != "never" {
		t.Errorf("after nothing was found: %s", got)
	}
}

// teller counts searches and notes which snapshot each was made from.
type teller struct {
	silent
	mu    sync.Mutex
	told  []string
	heard chan struct{}
}

func (t *teller) Searched(s *cluster.Snapshot, found *disrupt.Proposal, _ time.Duration) {
	t.mu.Lock()
	t.told = append(t.told, fmt.Sprintf("%d/%d", s.Rev, found.Rev))
	t.mu.Unlock()
	if t.heard != nil {
		t.heard <- struct{}{}
	}
}

func (t *teller) count() int { t.mu.Lock(); defer t.mu.Unlock(); return len(t.told) }

// Whoever drives the loop by Pass gets a search at the end of one pass and its answer in the next.
func TestSearchBetweenPasses(t *testing.T) {
	now := noon(0)
	book := ingest.New(func() time.Time { return now }, validate.Labels{}, nil)
	book.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	told := &teller{silent: silent{done: make(chan command.Outcome, 100)}}
	l := &Loop{World: book, Observer: told, Policy: plan.Policy{BatchIdle: time.Second, BatchMax: time.Second}}
	pass := func() plan.Plan { return l.Pass(func(*cluster.Snapshot, command.Command) {}) }

	if p := pass(); told.count() != 0 || !p.WakeAt.Equal(now.Add(time.Second)) {
		t.Fatalf("told %v; the next pass is to be at %v", told.told, p.WakeAt)
	}
	now = now.Add(time.Second)
	if p := pass(); told.count() != 0 || !p.WakeAt.Equal(now) {
		t.Fatalf("told %v; the next pass is to be at %v", told.told, p.WakeAt)
	}
	pass()
	if told.count() != 1 {
		t.Fatalf("told %v, want one search", told.told)
	}
	for range 100 { // a quiet cluster
		now = now.Add(10 * time.Second)
		pass()
	}
	if told.count() != 1 {
		t.Errorf("%d searches in a quiet cluster", told.count())
	}
	book.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}})
	pass()
	now = now.Add(time.Second)
	pass()
	pass()
	if told.count() != 2 {
		t.Errorf("%d searches after a change, want 2", told.count())
	}
}

// A search waits for pods that the last one has set in motion, but not for ever.
func TestSearchWaitsForPodsToLand(t *testing.T) {
	gone := cluster.Condition{Type: cluster.DisruptionReason, Status: cluster.True,
		Reason: string(command.Underutilized)}
	claim := func(change func(*cluster.Claim)) *cluster.Claim {
		c := &cluster.Claim{Name: "n", ProviderID: "n", Conditions: []cluster.Condition{gone}}
		change(c)
		return c
	}
	nodes := []*cluster.Node{{Name: "n", ProviderID: "n"}}
	leaving := func(c *cluster.Claim) { c.Deleting = noon(0) }
	for _, c := range []struct {
		what string
		s    cluster.Snapshot
		want bool
	}{
		{"nothing", cluster.Snapshot{}, false},
		{"a node that is fenced", cluster.Snapshot{Claims: []*cluster.Claim{claim(func(*cluster.Claim) {})},
			Nodes: nodes}, true},
		{"one that has drifted", cluster.Snapshot{Claims: []*cluster.Claim{claim(func(c *cluster.Claim) {
			c.Conditions[0].Reason = string(command.Drifted)
		})}, Nodes: nodes}, false},
		{"one that is drained", cluster.Snapshot{Claims: []*cluster.Claim{claim(leaving)}, Nodes: nodes,
			Pods: []*cluster.Pod{{UID: "p", Node: "n", Owner: "o"}}}, true},
		{"one that is empty by now", cluster.Snapshot{Claims: []*cluster.Claim{claim(leaving)}, Nodes: nodes}, false},
		{"a pod without a node", cluster.Snapshot{Pods: []*cluster.Pod{{UID: "p", Owner: "o"}},
			EvictedToSave: map[string]int{"other": 1}}, false},
		{"one of a workload that was evicted", cluster.Snapshot{Pods: []*cluster.Pod{{UID: "p", Owner: "o"}},
			EvictedToSave: map[string]int{"o": 1}}, true},
		{"they have landed", cluster.Snapshot{Pods: []*cluster.Pod{{UID: "p", Owner: "o", Node: "n"}},
			EvictedToSave: map[string]int{"o": 1}}, false},
	} {
		if got := podsMovingToSave(c.s.Seal()); got != c.want {
			t.Errorf("%s: moving %v, want %v", c.what, got, c.want)
		}
	}
	flying := cluster.Snapshot{Rev: 9, SupplyRev: 9, Now: noon(10 * time.Second),
		Pods: []*cluster.Pod{{UID: "p", Owner: "o"}}, EvictedToSave: map[string]int{"o": 1}}
	l := &Loop{World: nil}
	came(&l.searches, seen(1, 1, 0), 0, disrupt.Proposal{})
	p := plan.Plan{}
	if l.scheduleSearch(flying.Seal(), &p); l.searches.running || !p.WakeAt.Equal(noon(time.Minute)) {
		t.Errorf("searching %v, look again at %v, want a minute after the last search", l.searches.running, p.WakeAt)
	}
}

// Pods that have not been planned for come first.
func TestNoSearchWhilePodsAreGathered(t *testing.T) {
	now := noon(0)
	book := ingest.New(func() time.Time { return now }, validate.Labels{}, nil)
	told := &teller{silent: silent{done: make(chan command.Outcome, 100)}}
	l := &Loop{World: book, Observer: told, Policy: plan.Policy{BatchIdle: time.Second, BatchMax: 10 * time.Second}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p", Namespace: "d", Name: "p",
		OwnerReferences: []metav1.OwnerReference{{UID: "x", Controller: new(bool)}}}}
	*pod.OwnerReferences[0].Controller = true
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
	book.SetPod(pod)
	pass := func() plan.Plan { return l.Pass(func(*cluster.Snapshot, command.Command) {}) }
	if p := pass(); p.Provisioned || l.searches.found != nil {
		t.Fatalf("provisioned %v, searched %v", p.Provisioned, l.searches.found != nil)
	}
	now = now.Add(2 * time.Second)
	if p := pass(); !p.Provisioned || l.searches.found == nil { // it has been calm since
		t.Errorf("provisioned %v, searched %v; the pod is planned for and finds no place", p.Provisioned,
			l.searches.found != nil)
	}
}

// In the background a search is made on a snapshot of its own while plans go on.
func TestSearchInTheBackground(t *testing.T) {
	book := ingest.New(time.Now, validate.Labels{}, nil)
	for i := range 50 {
		book.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}})
	}
	told := &teller{silent: silent{done: make(chan command.Outcome, 100)}, heard: make(chan struct{}, 100)}
	l := &Loop{World: book, Observer: told, Policy: plan.Policy{BatchIdle: time.Second, BatchMax: time.Second}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = l.Run(ctx); close(ended) }()
	next(t, told.heard, "the first search")
	book.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "another"}})
	next(t, told.heard, "the search after a change")
	stop()
	<-ended
}
