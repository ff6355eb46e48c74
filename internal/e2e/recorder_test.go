package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

// recorder watches claims and pods, so that a test can tell what held at every moment and not only when it looked.
type recorder struct {
	w  *world
	mu sync.Mutex
	// claims that are there, pods that are there and whether they run, and the versions of both that the watches have
	// shown last.
	claims   map[types.UID]*v1.NodeClaim
	pods     map[types.UID]bool
	versions map[types.UID]string
	// most is the largest number of nodes that were on their way out at the same time, least the smallest number of
	// pods that ran, since the counting began.
	most, least int
	// left are the pods that went, and when; ready is when a node became ready for pods, by claim.
	left  []departure
	ready map[string]time.Time
	// reasons for which nodes were chosen to go.
	reasons map[string]bool
	// over are the moves with replacements that have come to their end, serve the replacements that have been ready for
	// pods; hasty are the nodes that were ended before what takes their place was ready.
	over  map[string]bool
	serve map[types.UID]bool
	hasty []string
	// gone is when a claim of a pool was deleted for the first time; said are the texts of conditions that were not
	// True.
	gone map[string]time.Time
	said map[string]bool
	// full is how many pods ran when the counting began, short since when fewer do, and longest for how long at most.
	full    int
	short   time.Time
	longest time.Duration
}

// departure is a pod that was asked to leave or is gone.
type departure struct {
	uid  types.UID
	node string
	at   time.Time
}

// record begins to watch; it ends with the test.
func (w *world) record() *recorder {
	w.Helper()
	c, err := client.NewWithWatch(w.lab.Config(), client.Options{Scheme: w.c.Scheme()})
	w.must(err)
	e := &recorder{w: w, claims: map[types.UID]*v1.NodeClaim{}, pods: map[types.UID]bool{},
		versions: map[types.UID]string{}, ready: map[string]time.Time{}, reasons: map[string]bool{},
		over: map[string]bool{}, serve: map[types.UID]bool{}, gone: map[string]time.Time{}, said: map[string]bool{}}
	e.follow(c, &v1.NodeClaimList{})
	e.follow(c, &corev1.PodList{}, client.InNamespace(w.lab.Namespace()))
	return e
}

func (e *recorder) follow(c client.WithWatch, list client.ObjectList, options ...client.ListOption) {
	e.w.Helper()
	changes, err := c.Watch(e.w.ctx, list, options...)
	e.w.must(err)
	ended := make(chan struct{})
	e.w.Cleanup(func() { changes.Stop(); <-ended })
	go func() {
		defer close(ended)
		for change := range changes.ResultChan() {
			switch o := change.Object.(type) {
			case *v1.NodeClaim:
				e.sawClaim(o, change.Type == watch.Deleted)
			case *corev1.Pod:
				e.sawPod(o, change.Type == watch.Deleted)
			}
		}
		if e.w.ctx.Err() == nil {
			e.w.Errorf("the watch of %T ended before the test", list)
		}
	}()
}

func (e *recorder) sawClaim(c *v1.NodeClaim, gone bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.note(c, gone)
	if was := e.claims[c.UID]; c.DeletionTimestamp != nil && (was == nil || was.DeletionTimestamp == nil) {
		e.ended(c)
		if pool := c.Labels[v1.NodePoolLabelKey]; e.gone[pool].IsZero() {
			e.gone[pool] = time.Now()
		}
	}
	for _, cond := range c.Status.Conditions {
		if cond.Status != "True" {
			e.said[cond.Message] = true
		}
	}
	e.claims[c.UID] = c
	if gone {
		delete(e.claims, c.UID)
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionTypeInitialized); ready != nil &&
		ready.Status == "True" {
		e.ready[c.Name] = ready.LastTransitionTime.Time
		if c.Annotations["tenon.sh/replaces"] != "" {
			e.serve[c.UID] = true // also if it goes itself before others do
		}
	}
	if reason := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionTypeDisruptionReason); reason != nil &&
		reason.Status == "True" {
		e.reasons[reason.Reason] = true
	}
	out := 0
	for _, other := range e.claims {
		if leaving(other) {
			out++
		}
	}
	e.most = max(e.most, out)
}

// ended tests that a node is ended only when there is something ready for pods that was made to take its place, or that
// of a node like it: among moves that are alike the first replacement to be ready serves the oldest. So of moves with
// replacements no more may have come to their end than replacements are ready. Changes of claims come in the order in
// which they were made.
func (e *recorder) ended(c *v1.NodeClaim) {
	move, replaced := c.Annotations["tenon.sh/move"], false
	for _, other := range e.claims {
		replaced = replaced || move != "" && other.Annotations["tenon.sh/replaces"] == move
	}
	if !replaced {
		return
	}
	e.over[move] = true
	if ready := len(e.serve); ready < len(e.over) {
		e.hasty = append(e.hasty, fmt.Sprintf("%s was ended as number %d when %d replacements had been ready for pods",
			c.Name, len(e.over), ready))
	}
}

// leaving reports whether a claim counts against its pool's budgets: it has been chosen or deleted, and its machine is
// not being ended yet.
func leaving(c *v1.NodeClaim) bool {
	is := func(kind string) bool { return meta.IsStatusConditionTrue(c.Status.Conditions, kind) }
	return is(v1.ConditionTypeInitialized) && !is(v1.ConditionTypeInstanceTerminating) &&
		(c.DeletionTimestamp != nil || is(v1.ConditionTypeDisruptionReason))
}

func (e *recorder) sawPod(p *corev1.Pod, gone bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.note(p, gone)
	was, known := e.pods[p.UID]
	e.pods[p.UID] = p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
	if was && (gone || p.DeletionTimestamp != nil) {
		e.left = append(e.left, departure{uid: p.UID, node: p.Spec.NodeName, at: time.Now()})
	}
	if gone {
		delete(e.pods, p.UID)
	}
	if known {
		e.least = min(e.least, e.running())
	}
	e.measure()
}

// measure keeps count of how long fewer pods run than at first.
func (e *recorder) measure() {
	switch fewer := e.running() < e.full; {
	case fewer && e.short.IsZero():
		e.short = time.Now()
	case !fewer && !e.short.IsZero():
		e.longest, e.short = max(e.longest, time.Since(e.short)), time.Time{}
	}
}

func (e *recorder) running() int {
	n := 0
	for _, runs := range e.pods {
		if runs {
			n++
		}
	}
	return n
}

// begin forgets what was counted so far. The counting begins with what the watches have shown, so the test names the
// pods that run and waits until the recorder has seen them, too.
func (e *recorder) begin(running int) {
	e.w.Helper()
	e.catchUp()
	e.w.eventually(func() string {
		e.mu.Lock()
		defer e.mu.Unlock()
		if n := e.running(); n != running || len(e.pods) != running {
			return fmt.Sprintf("the recorder has seen %d pods run of %d in all, not %d", n, len(e.pods), running)
		}
		e.most, e.least, e.left, e.reasons = 0, running, nil, map[string]bool{}
		e.full, e.short, e.longest = running, time.Time{}, 0
		return ""
	})
}

// held tests that no more nodes than that were on their way out at the same time, that no fewer pods ran, and that
// nothing was ended before what replaces it was ready.
func (e *recorder) held(most, least int) {
	e.w.Helper()
	e.catchUp()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.most > most {
		e.w.Errorf("%d nodes were on their way out at the same time; the budget is %d", e.most, most)
	}
	if e.least < least {
		e.w.Errorf("only %d pods ran at a time, want at least %d", e.least, least)
	}
	for _, text := range e.hasty {
		e.w.Error(text)
	}
}

// departures are the pods that have left since the counting began.
func (e *recorder) departures() []departure {
	e.w.Helper()
	e.catchUp()
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]departure(nil), e.left...)
}

// readyBy tells whether a claim's node was ready for pods by then. The API has full seconds.
func (e *recorder) readyBy(claim string, at time.Time) bool {
	e.w.Helper()
	e.catchUp()
	e.mu.Lock()
	defer e.mu.Unlock()
	ready, ok := e.ready[claim]
	return ok && !ready.After(at)
}

// anotherReadyBy is readyBy for any claim but the given one, be it gone by now.
func (e *recorder) anotherReadyBy(not string, at time.Time) bool {
	e.w.Helper()
	e.catchUp()
	e.mu.Lock()
	defer e.mu.Unlock()
	for claim, ready := range e.ready {
		if claim != not && !ready.After(at) {
			return true
		}
	}
	return false
}

// goneAt is when the first claim of a pool was deleted; zero if none was.
func (e *recorder) goneAt(pool string) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gone[pool]
}

// lacked is the longest time for which fewer pods ran than when the counting began.
func (e *recorder) lacked() time.Duration {
	e.w.Helper()
	e.catchUp()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.longest
}

// heard says what is missing: a condition of some claim, be it gone by now, has said all the words.
func (e *recorder) heard(words ...string) func() string {
	return func() string {
		e.mu.Lock()
		defer e.mu.Unlock()
		for text := range e.said {
			if containsAll(text, words) {
				return ""
			}
		}
		return fmt.Sprintf("no condition of a claim has said %q: %q", words, slices.Sorted(maps.Keys(e.said)))
	}
}

// gave tells whether nodes were chosen to go for a reason.
func (e *recorder) gave(reason string) bool {
	e.w.Helper()
	e.catchUp()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reasons[reason]
}

// price is what the nodes cost in an hour.
func (w *world) price() float64 {
	sum := 0.0
	for _, n := range w.nodes() {
		price, err := strconv.ParseFloat(n.Labels[kwokv1alpha1.InstancePriceLabelKey], 64)
		w.must(err)
		sum += price
	}
	return sum
}

// onDemand keeps a pool to machines that are bought on demand and have at most so many cores: what replaces a spot node
// has to meet rules that these tests are not about.
func onDemand(cores string) func(*v1.NodePool) {
	return func(p *v1.NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
			v1.NodeSelectorRequirementWithMinValues{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn,
				Values: []string{"on-demand"}},
			v1.NodeSelectorRequirementWithMinValues{Key: kwokv1alpha1.InstanceCPULabelKey,
				Operator: v1.NodeSelectorOpLte, Values: []string{cores}})
	}
}

// budgets sets how many nodes may go at a time.
func budgets(nodes ...string) func(*v1.NodePool) {
	return func(p *v1.NodePool) {
		p.Spec.Disruption.Budgets = nil
		for _, n := range nodes {
			p.Spec.Disruption.Budgets = append(p.Spec.Disruption.Budgets, v1.Budget{Nodes: n})
		}
	}
}

// change changes a pool that is there.
func (w *world) change(pool string, change ...func(*v1.NodePool)) {
	w.Helper()
	w.eventually(func() string {
		var p v1.NodePool
		w.must(w.c.Get(w.ctx, client.ObjectKey{Name: pool}, &p))
		for _, f := range change {
			f(&p)
		}
		// The controller may have written its status in between.
		if err := w.c.Update(w.ctx, &p); err != nil {
			return err.Error()
		}
		return ""
	})
}

// replicas sets how many pods a Deployment wants.
func (w *world) replicas(deployment string, n int) {
	w.Helper()
	d := w.deployment(deployment, 0, "1")
	w.must(w.c.Patch(w.ctx, d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))))
}

// hears says what is missing: an event about an object says all the words.
func (w *world) hears(reason, name string, words ...string) func() string {
	return func() string {
		texts := w.messages(reason, name)
		for _, text := range texts {
			if containsAll(text, words) {
				return ""
			}
		}
		return fmt.Sprintf("no event %s about %s says %q: %q", reason, name, words, texts)
	}
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}
