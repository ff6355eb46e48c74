package sim

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// judge watches over the promises that hold at every step. What a replica does that has lost the lease without noticing
// is not held against limits and budgets: it can't know what its successor does, and no lock reaches that far.
// Everything else holds for it too. Its successor has to reckon with all of it that shows in its own cache when it
// begins something.
type judge struct {
	sim *Sim
	// foreign are claims that such a replica has made.
	foreign map[types.UID]bool
	// knew are the foreign claims that the maker of a claim knew of.
	knew map[types.UID]map[types.UID]bool
	// written are machines that a claim has named.
	written map[string]bool
	// voluntary are claims that were ended because somebody chose to; true if a leader did it, false if a stale
	// replica. repaired are those that a leader has ended for their health.
	voluntary, repaired map[types.UID]bool
	// turns say in which turn it was decided to end them.
	turns map[types.UID]int
	// moves are the moves that claims go in, and begun is when the first claim of a move got into it.
	moves map[types.UID]string
	begun map[string]time.Time
	// reopens counts the nodes of a move that were opened again, and loosened is when a stale replica last took down
	// the fence of one.
	reopens  map[string]int
	loosened map[string]time.Time
	// meant are claims that a replica has begun to fence for a move: one may be gone before that is written on it.
	meant map[types.UID]string
	// takenFrom are the moves of which a node was interrupted: it goes for that reason, and its pods need a part of
	// what was made.
	takenFrom map[string]bool
	// repooled is from when to when somebody had changed which pool a claim says it is of.
	repooled map[types.UID]span
	// left is what the nodes cost that a leader has ended for a move so far, by move, and leftByStale is the same of
	// stale replicas; movesWith are the moves that share new nodes, by the name of the first.
	left, leftByStale map[string]float64
	// died are the moves of which a machine had died by itself when its node was ended.
	died      map[string]bool
	movesWith map[string]string
	// before are the pods that were there when the first node of a move was ended, by move: none of them has come in
	// the place of a pod of the move's nodes.
	before map[string]map[types.UID]bool
	// asked is when a replica last began to ask the cloud's list for the machine of a claim that names none.
	asked map[question]time.Time
	// bound is when kube-scheduler last found a place for a pod.
	bound time.Time
	// provisioned is when a claim was last made for pods that had found no place.
	provisioned time.Time
	// marked are claims that say why they go, and fences is when each has begun to say so.
	marked map[types.UID]bool
	fences map[types.UID][]time.Time
	// unused counts the nodes that were made for somebody and are of no use to them.
	unused *unusedJudge
}

func newJudge(s *Sim) *judge {
	return &judge{
		sim: s, foreign: make(map[types.UID]bool), knew: make(map[types.UID]map[types.UID]bool),
		written:   make(map[string]bool),
		voluntary: make(map[types.UID]bool), repaired: make(map[types.UID]bool), turns: make(map[types.UID]int),
		left: make(map[string]float64), leftByStale: make(map[string]float64), died: make(map[string]bool),
		movesWith: make(map[string]string),
		before:    make(map[string]map[types.UID]bool), asked: make(map[question]time.Time),
		meant: make(map[types.UID]string), takenFrom: make(map[string]bool), repooled: make(map[types.UID]span),
		moves: make(map[types.UID]string), begun: make(map[string]time.Time), reopens: make(map[string]int),
		loosened: make(map[string]time.Time),
		marked:   make(map[types.UID]bool), fences: make(map[types.UID][]time.Time), unused: newUnusedJudge(s),
	}
}

// known is what a replica knows now of the claims that stale ones have made, and of those that are on their way out.
func (j *judge) known(r *replica) (foreign, leaving map[types.UID]bool) {
	foreign, leaving = make(map[types.UID]bool), make(map[types.UID]bool)
	for _, obj := range r.cache[claims] {
		if j.foreign[obj.GetUID()] {
			foreign[obj.GetUID()] = true
		}
		if obj.GetDeletionTimestamp() != nil {
			leaving[obj.GetUID()] = true
		}
	}
	return foreign, leaving
}

// unknown reports whether whoever knew of these foreign claims can't have reckoned with the claim.
func (j *judge) unknown(knows map[types.UID]bool, claim *v1.NodeClaim) bool {
	return j.foreign[claim.UID] && !knows[claim.UID]
}

// longestLag is how far a watch may be behind, or be broken for.
const longestLag = 30 * time.Second

// The promises that are looked at in more than one place, and the excuse that many have in common.
const (
	withinLimits   = "limits are never exceeded"
	budgetsHold    = "budgets are never exceeded"
	byEviction     = "pods leave by eviction or last call"
	claimOutlives  = "a claim outlives its machine"
	neverDearer    = "consolidation never raises cost"
	givenUpForFree = "a move that is given up does not raise the cost"
	cutOff         = "the replica had lost the lease and did not know"
)

// beginning: a replica begins to carry a command out. A pod that it binds has room, by what the replica knows. It can't
// know what kube-scheduler does at the same moment; what does not fit then is turned away by the kubelet.
func (j *judge) beginning(r *replica, c command.Command) {
	if end, ok := c.(command.DeleteClaim); ok {
		if !r.stale {
			j.joins(r, end)
		}
		j.ending(r, end)
		j.interrupting(r, end)
	}
	if fence, ok := c.(command.Fence); ok && fence.Move != "" {
		if old := j.meant[types.UID(fence.UID)]; old != "" && old != fence.Move && fence.Reason == command.Interrupted {
			j.takenFrom[old] = true
		}
		j.meant[types.UID(fence.UID)] = fence.Move
	}
	if end, ok := c.(command.Terminate); ok && end.ProviderID == "" {
		j.asked[question{r.number, end.UID}] = j.sim.clock.now
	}
	bind, ok := c.(command.Bind)
	if !ok {
		return
	}
	node, ok := r.cache[nodes][bind.Node].(*corev1.Node)
	pod, there := r.cache[pods][bind.Namespace+"/"+bind.Name].(*corev1.Pod)
	if !ok || !there {
		j.sim.fail("pods go to nodes that are there", "%s binds %s to %s, of which it knows nothing", r,
			bind.Pod, bind.Node)
		return
	}
	used := sizeOf(pod)
	for _, obj := range r.cache[pods] {
		if p := obj.(*corev1.Pod); p.UID != pod.UID && !isDone(p) && (p.Spec.NodeName == bind.Node ||
			p.Spec.NodeName == "" && r.isBinding(p.UID, bind.Node)) {
			used = used.add(sizeOf(p))
		}
	}
	// Of what the pod does not ask for there may be too little already, as after two replicas with old lists.
	if room := roomOf(node.Status.Allocatable); !used.of(sizeOf(pod)).within(room) {
		j.sim.fail("no pod beyond capacity", "%s binds %s to %s, which has %+v, and its pods take %+v", r, bind.Pod,
			bind.Node, room, used)
	}
}

// isBinding reports whether the replica is just binding the pod to the node.
func (r *replica) isBinding(uid types.UID, node string) bool {
	return slices.ContainsFunc(r.acts, func(a *act) bool {
		b, ok := a.command.(command.Bind)
		return ok && b.UID == string(uid) && b.Node == node
	})
}

// evicting: a replica asks for an eviction. A pod that must not be disrupted is never asked.
func (j *judge) evicting(r *replica, pod *corev1.Pod) {
	text := pod.Annotations[v1.DoNotDisruptAnnotationKey]
	protected := text == "true"
	if length, err := time.ParseDuration(text); err == nil && length >= 0 {
		protected = pod.Status.StartTime == nil || j.sim.clock.now.Before(pod.Status.StartTime.Add(length))
	}
	const promise = "a do-not-disrupt pod is not evicted before its deadline"
	if j.asks(promise); protected {
		j.sim.fail(promise, "%s asks to evict %s", r, pod.Name)
	}
}

// spending: the API server grants an eviction. The budget had it to give.
func (j *judge) spending(g *policyv1.PodDisruptionBudget) {
	healthy := int32(0)
	for _, pod := range list[*corev1.Pod](j.sim.store, pods) {
		if pod.Namespace == g.Namespace && selects(g, pod) && pod.DeletionTimestamp == nil && isReady(pod) {
			healthy++
		}
	}
	const promise = "a disruption budget is never overrun"
	if j.asks(promise); healthy > g.Status.DesiredHealthy {
		return
	}
	j.charge(promise, []excuseReason{is("pods went by themselves before they were counted again",
		healthy < g.Status.CurrentHealthy)},
		"%s wants %d healthy pods, has %d, and one is evicted", g.Name, g.Status.DesiredHealthy, healthy)
}

// deleting: a replica deletes something.
func (j *judge) deleting(r *replica, obj client.Object) {
	switch o := obj.(type) {
	case *corev1.Pod:
		j.lastCall(r, o)
	case *v1.NodeClaim:
		j.disrupting(r, o)
		j.givingUp(r, o)
	}
}

// lastCall: a pod is deleted without asking only when its node's time is up, or its machine is no more.
func (j *judge) lastCall(r *replica, pod *corev1.Pod) {
	s := j.sim
	j.asks(byEviction)
	if m := s.machineOf(pod.Spec.NodeName); m == nil || m.instance.Terminating {
		return
	}
	claim := s.claimOf(pod.Spec.NodeName)
	if claim == nil {
		j.charge(byEviction, []excuseReason{is("the claim was removed by force", true)}, "")
		return // what its end was to be can't be told any more
	}
	if claim.DeletionTimestamp == nil {
		s.fail(byEviction, "%s deletes %s on %s, which is not on its way out", r, pod.Name, pod.Spec.NodeName)
		return
	}
	end, has := endOf(claim)
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	if !has || s.clock.now.Before(end.Add(-grace)) {
		s.fail(byEviction, "%s deletes %s, %s before the end of its node", r, pod.Name, end.Sub(s.clock.now))
	}
}

// deadlineOf is when a claim that is being deleted must be gone.
func deadlineOf(claim *v1.NodeClaim) (end time.Time, has bool) {
	if text := claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey]; text != "" {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at, true
		}
	}
	if grace := claim.Spec.TerminationGracePeriod; grace != nil {
		return claim.DeletionTimestamp.Add(grace.Duration), true
	}
	return time.Time{}, false
}

// claimOf is the claim of a node; nil without one.
func (s *Sim) claimOf(node string) *v1.NodeClaim {
	n, ok := find[*corev1.Node](s.store, nodes, node)
	if !ok {
		return nil
	}
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		if c.Status.ProviderID != "" && c.Status.ProviderID == n.Spec.ProviderID {
			return c
		}
	}
	return nil
}

// changed: a replica has changed something. A claim that it lets go of has no machine any more.
func (j *judge) changed(r *replica, k kind, key string) {
	if k == nodes {
		j.loosens(r, key)
	}
	if k != claims {
		return
	}
	if claim, there := find[*v1.NodeClaim](j.sim.store, claims, key); there {
		j.written[claim.Status.ProviderID] = true
		j.fencing(r, claim)
		j.moved(r, claim)
		return
	}
	c, ok := r.current.command.(command.Release)
	if !ok || c.Claim != key {
		return
	}
	j.asks(claimOutlives)
	for _, m := range j.sim.cloud.machines {
		if m.instance.ClaimUID == c.UID {
			j.charge(claimOutlives, []excuseReason{is("another replica has just launched it", j.launchedBeside(r, m)),
				is("the cloud's list did not show it yet", j.hidden(r, m))},
				"%s lets go of %s while %s runs", r, key, m.instance.ProviderID)
		}
	}
}

// moved: a claim may have got into a move. A move that is tried again begins anew.
func (j *judge) moved(r *replica, claim *v1.NodeClaim) {
	move, before := claim.Annotations[cluster.MoveAnnotation], j.moves[claim.UID]
	if move == before {
		return
	}
	delete(j.moves, claim.UID)
	if move == "" {
		delete(j.meant, claim.UID)
		j.reopened(r, claim, before)
		return
	}
	if !slices.Contains(slices.Collect(maps.Values(j.moves)), move) {
		j.begun[move] = j.sim.clock.now
	}
	j.moves[claim.UID] = move
}

// launchedBeside reports whether another replica has launched the machine beside this one, and not before it began:
// what came before shows in the cloud's list. The machine is found and ended later.
func (j *judge) launchedBeside(r *replica, m *machine) bool {
	return m.by != r && m.instance.CreatedAt.After(r.started)
}

// question is what a replica asks about a claim.
type question struct {
	replica int
	claim   string
}

// hidden reports whether the replica can't have known of the machine when it began to let go of the claim or, if it has
// asked before, when it did that: the answer to the launch was lost, or was never written down, and the cloud's list
// did not show the machine. It is found later.
func (j *judge) hidden(r *replica, m *machine) bool {
	began := r.current.began
	if at, asked := j.asked[question{r.number, m.instance.ClaimUID}]; asked {
		began = at
	}
	return !j.written[m.instance.ProviderID] && began.Before(m.instance.CreatedAt.Add(j.sim.cloud.late))
}
