package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

const (
	// reallyRan is how long a pod must have run on a node for the node not to count as unused: a minute. The judge
	// looks once a second and sees both ends of it late, so it may take a minute for a second or two less.
	reallyRan = 58 * time.Second
	// triesAnHour is how many nodes are launched for an owner within an hour at most, after those of one plan.
	triesAnHour = 20
	// triesAtFirst is how many of them follow within minutes when the tries begin anew.
	triesAtFirst = 6

	// unusedBounded and launchesBounded are promises.
	unusedBounded   = "unused nodes are bounded"
	launchesBounded = "launches for unused nodes are bounded"
)

// unusedJudge is the judge's own account of unused nodes. It is kept from what happens in the world, not from what the
// program writes down about itself.
type unusedJudge struct {
	sim *Sim
	// on says that the bound is judged; began is when replicas did, but for the first.
	on    bool
	began []time.Time
	// moving says that nodes are replaced for other reasons than to save money; billed that what unused nodes cost is
	// judged.
	moving, billed bool
	// shrinks says that an agent takes from machines what they have, maybe before they are up.
	shrinks bool
	// tight says that a machine may have had room for fewer pods than shareOf tells: something has shrunk it, or
	// DaemonSets are there.
	tight bool
	// madeFor are the owners that a claim was made for, by the claim's UID, and madeAt is when.
	madeFor map[types.UID]map[types.UID]bool
	madeAt  map[types.UID]time.Time
	// daemons are the DaemonSets that there were when a claim was made.
	daemons map[types.UID][]*appsv1.DaemonSet
	// since is when a pod of an owner was first seen to run on a claim's node, without a break; ran says that it was
	// long enough.
	since map[pairing]time.Time
	ran   map[pairing]bool
	// filled are nodes that lost the room that the owner's pods need before they were up; carried are nodes to which
	// pods came of others than the owner.
	filled  map[pairing]bool
	carried map[pairing]bool
	// of is what is known of each owner.
	of map[types.UID]*account
}

// account is what the judge knows of an owner.
type account struct {
	// wanted is the most pods that it wanted at a time, alive the most that there were, those included that were being
	// terminated; share is how many of them the smallest machine takes.
	wanted, alive, share int
	// wants is how many it wants now, and crowds how many there were or were wanted, each time that this changed.
	wants  int
	crowds []podCount
	pod    *corev1.PodSpec
	// launched are the machines that were launched for it within the last hour, since a pod of its last ran on a new
	// one for long enough, but for those on which pods of others did.
	launched []time.Time
	// most is the most that were unused at the same time, and dearest what they cost per hour.
	most    int
	dearest float64
}

// podCount is how many pods an owner had or wanted from a moment on.
type podCount struct {
	since time.Time
	pods  int
}

// counts notes how many pods there are or are wanted, if that has changed.
func (a *account) counts(now time.Time, pods int) {
	if last := len(a.crowds) - 1; last < 0 || a.crowds[last].pods != pods {
		a.crowds = append(a.crowds, podCount{since: now, pods: pods})
	}
}

// mostSince is the most pods that the owner had or wanted at a time since then.
func (a *account) mostSince(then time.Time) int {
	most := a.wants
	for _, c := range slices.Backward(a.crowds) {
		most = max(most, c.pods)
		if c.since.Before(then) {
			break
		}
	}
	return most
}

// pairing is a claim and an owner that it was made for; the owner is empty for anybody.
type pairing struct{ claim, owner types.UID }

func newUnusedJudge(s *Sim) *unusedJudge {
	return &unusedJudge{
		sim: s, madeFor: make(map[types.UID]map[types.UID]bool), madeAt: make(map[types.UID]time.Time),
		daemons: make(map[types.UID][]*appsv1.DaemonSet),
		since:   make(map[pairing]time.Time), ran: make(map[pairing]bool),
		of: make(map[types.UID]*account), filled: make(map[pairing]bool), carried: make(map[pairing]bool),
	}
}

// about is the account of an owner.
func (v *unusedJudge) about(owner types.UID) *account {
	a := v.of[owner]
	if a == nil {
		a = &account{}
		v.of[owner] = a
	}
	return a
}

// wants: somebody has said how many pods a ReplicaSet is to have.
func (v *unusedJudge) wants(set *appsv1.ReplicaSet) {
	a := v.about(set.UID)
	a.wants = int(*set.Spec.Replicas)
	a.wanted = max(a.wanted, a.wants)
	a.counts(v.sim.clock.now, a.wants) // it may be other before the next look
	if a.pod == nil {
		a.pod, a.share = &set.Spec.Template.Spec, v.sim.shareOf(&set.Spec.Template.Spec)
	}
}

// made: a replica has made a claim.
func (v *unusedJudge) made(r *replica, claim *v1.NodeClaim) {
	c, ok := r.current.command.(command.CreateClaim)
	if !ok || !v.on {
		return
	}
	owners := make(map[types.UID]bool)
	for _, p := range c.Pods {
		if uid := strings.TrimPrefix(p.Owner, p.Namespace+"/"); uid != "" {
			owners[types.UID(uid)] = true
		}
	}
	v.madeFor[claim.UID], v.madeAt[claim.UID] = owners, v.sim.clock.now
	v.daemons[claim.UID] = slices.Clone(v.sim.daemons)
}

// start: the cloud runs a machine for a claim.
func (v *unusedJudge) start(claim types.UID) {
	for owner := range v.madeFor[claim] {
		a := v.about(owner)
		a.launched = append(a.launched, v.sim.clock.now)
		v.judgeLaunches(owner, a)
	}
}

// needs is the most nodes that the owner's pods have taken at a time since then: as many as pods, or less if the
// smallest machine takes several. Pods that are being terminated still take room. In the ordinary histories workloads
// share the nodes of a plan, so that a node takes fewer pods of each, and pods of one that are being terminated fill
// nodes that those in their place need.
func (v *unusedJudge) needs(owner types.UID, since time.Time) int {
	a := v.about(owner)
	if v.moving { // a replica may know for a while of pods that are no longer wanted
		return a.mostSince(since.Add(-longestLag))
	}
	share := max(a.share, 1)
	if v.tight {
		share = 1
	}
	return min(a.wanted, (max(a.alive, a.wanted)+share-1)/share)
}

// allowed is the bound that docs/concepts/bounds.md states: the nodes that the owner's pods need, one that stays to
// show what is wrong, and one that is tried.
func (v *unusedJudge) allowed(owner types.UID, since time.Time) int {
	return v.needs(owner, since) + 2
}

// mayLaunch is how many machines are launched for the owner within an hour at most as long as its pods run nowhere, by
// the same document: the nodes of one plan, those of one more because the first that came after seemed well, and the
// tries that follow. A new replica may know little of what was tried, and begin anew.
func (v *unusedJudge) mayLaunch(owner types.UID) int {
	then := v.sim.clock.now.Add(-time.Hour)
	restarts := len(slices.DeleteFunc(slices.Clone(v.began), then.After))
	needs := v.needs(owner, then)
	return 2*needs + triesAnHour + restarts*(2*needs+triesAtFirst)
}

// judgeLaunches asks how many machines were launched for the owner within the last hour.
func (v *unusedJudge) judgeLaunches(owner types.UID, a *account) {
	a.launched = slices.DeleteFunc(a.launched, v.sim.clock.now.Add(-time.Hour).After)
	v.sim.judge.asks(launchesBounded)
	if n, most := len(a.launched), v.mayLaunch(owner); n > most {
		v.sim.fail(launchesBounded, "%d machines were launched within the hour for %s, which wants %d pods on %d "+
			"nodes; at most %d may",
			n, owner, a.wanted, v.needs(owner, v.sim.clock.now.Add(-time.Hour)), most)
	}
}

// owners are all of them, in order.
func (v *unusedJudge) owners() []types.UID { return slices.Sorted(maps.Keys(v.of)) }

// watch looks at the world every now and then.
func (v *unusedJudge) watch() {
	v.look()
	if !v.sim.over() {
		v.sim.clock.after(time.Second, v.watch)
	}
}

// idle is what is unused for an owner at a moment: how many nodes, what they cost, and when the first of them was
// made. lost counts those whose claim somebody has taken away, ended those that somebody deletes on their way, filled
// those that lost their room before they were up, drifted those that have drifted and are in no move. coming are those
// that take the place of others, by the move. going are those that go because they have drifted, by the move,
// driftedSince is when the first of them was found to be, and anew is when those were made that have not drifted.
type idle struct {
	count, lost, ended, filled, drifted int
	price                               float64
	since, driftedSince                 time.Time
	coming, going                       map[string]int
	anew                                []time.Time
}

// replaced is how many nodes have a replacement beside them that is unused. The node itself need not be: its pods run
// there until they go over. A replacement that drifts on its way is replaced by another one of the same move. A node
// that drifts before any pod has come goes at once, and another is made for those that wait. It names no move, or
// another one that wants a node for pods like these.
func (v *unusedJudge) replaced(i *idle) int {
	n, all, going := i.drifted, 0, make(map[string]int)
	for _, m := range v.sim.cloud.machines {
		if claim := v.sim.ownerOf(m); claim != nil {
			going[claim.Annotations[cluster.MoveAnnotation]]++
		}
	}
	for move, coming := range i.coming {
		n, all = n+min(coming, going[move]), all+coming
	}
	empty := 0
	for move, leave := range i.going {
		if i.coming[move] == 0 {
			empty += leave
		}
	}
	later, known := slices.DeleteFunc(slices.Clone(i.anew), i.driftedSince.After), min(n, all)
	return known + min(empty, max(len(later)-known, 0))
}

// look counts the unused machines.
func (v *unusedJudge) look() {
	s := v.sim
	on := v.countPods()
	found := make(map[types.UID]*idle)
	for _, m := range s.cloud.machines {
		uid := types.UID(m.instance.ClaimUID)
		busy, runs := false, make(map[types.UID]bool)
		for _, p := range on[m.node] {
			if !m.joined || p.DeletionTimestamp != nil {
				continue
			}
			busy = true
			owner := metav1.GetControllerOfNoCopy(p)
			if owner != nil && p.Status.Phase == corev1.PodRunning {
				runs[owner.UID] = true
			}
			for other := range v.madeFor[uid] {
				if owner == nil || owner.UID != other {
					v.carried[pairing{uid, other}] = v.moving
				}
			}
		}
		v.follow(pairing{claim: uid}, len(runs) > 0)
		for owner := range v.madeFor[uid] {
			at := pairing{uid, owner}
			v.follow(at, runs[owner])
			if !v.ran[at] && !v.ran[pairing{claim: uid}] && !v.carried[at] && !busy {
				v.note(found, owner, m)
			}
		}
	}
	for _, owner := range v.owners() {
		if i := found[owner]; i != nil {
			v.judge(owner, i)
		}
	}
}

// note counts a machine that is unused by the owner.
func (v *unusedJudge) note(found map[types.UID]*idle, owner types.UID, m *machine) {
	i := found[owner]
	if i == nil {
		i = &idle{coming: make(map[string]int), going: make(map[string]int)}
		found[owner] = i
		v.about(owner)
	}
	i.since = cluster.Earlier(i.since, v.madeAt[types.UID(m.instance.ClaimUID)])
	i.count++
	i.price += v.sim.machinePrice(m)
	claim := v.sim.ownerOf(m)
	is := func(kind string) bool { return meta.IsStatusConditionTrue(claim.Status.Conditions, kind) }
	switch {
	case claim == nil:
		i.lost++
		return
	case claim.DeletionTimestamp != nil && !is(v1.ConditionTypeInitialized):
		i.ended++
		return
	}
	replaces, leaves := claim.Annotations[cluster.ReplacesAnnotation], claim.Annotations[cluster.MoveAnnotation]
	switch drifted := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionTypeDrifted); {
	case !is(v1.ConditionTypeDrifted):
		i.anew = append(i.anew, v.madeAt[claim.UID])
	case leaves == "":
		i.drifted++
	case disrupt.MoveReason(leaves) == command.Drifted:
		i.going[leaves]++
		i.driftedSince = cluster.Earlier(i.driftedSince, drifted.LastTransitionTime.Time)
	}
	if replaces != "" {
		i.coming[replaces]++
	}
	at := pairing{claim.UID, owner}
	if !is(v1.ConditionTypeInitialized) && v.losesRoom(owner, m) {
		v.filled[at] = true
	}
	if v.filled[at] {
		i.filled++
	}
}

// judge holds the unused nodes of an owner to its bounds.
func (v *unusedJudge) judge(owner types.UID, i *idle) {
	s, a := v.sim, v.of[owner]
	a.most, a.dearest = max(a.most, i.count), max(a.dearest, i.price)
	s.judge.asks(unusedBounded)
	if most := v.allowed(owner, i.since); i.count > most {
		replaced := v.replaced(i)
		s.judge.charge(unusedBounded, []excuseReason{
			is("claims were taken away from their machines", v.moving && i.count-i.lost <= most),
			is("nodes stand beside those that replace them", v.moving && i.count-i.lost-replaced <= most),
			is("nodes were deleted on their way", v.moving && i.count-i.lost-replaced-i.ended <= most),
			is("nodes lost their room on their way", v.moving && i.count-i.lost-replaced-i.ended-i.filled <= most),
		}, "%d nodes were made for %s, which wants %d pods on %d nodes, and none of its pods ever "+
			"ran on them; at most %d may, and %d more are being replaced",
			i.count, owner, a.wanted, v.needs(owner, i.since), most, replaced)
	}
	if most := v.mayCost(); v.billed && i.price > most+rounding {
		s.fail("what unused nodes cost is bounded", "%d nodes for %.3f an hour were made for %s, which wants %d "+
			"pods on %d nodes, and none "+
			"of its pods ever ran on them; at most %.3f may be spent", i.count, i.price, owner, a.wanted,
			v.needs(owner, i.since), most)
	}
}

// countPods counts the pods of each owner, and finds those of workloads that are on each node and have not ended.
func (v *unusedJudge) countPods() map[string][]*corev1.Pod {
	alive, on := make(map[types.UID]int), make(map[string][]*corev1.Pod)
	for _, p := range list[*corev1.Pod](v.sim.store, pods) {
		if isDone(p) || ofDaemonSet(p) {
			continue
		}
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
			alive[owner.UID]++
		}
		if p.Spec.NodeName != "" {
			on[p.Spec.NodeName] = append(on[p.Spec.NodeName], p)
		}
	}
	for owner := range alive {
		v.about(owner)
	}
	for owner, a := range v.of {
		n := alive[owner]
		a.alive, n = max(a.alive, n), max(n, a.wants)
		a.counts(v.sim.clock.now, n)
	}
	return on
}

// follow notes whether a pod of the owner runs on the claim's node, and since when.
func (v *unusedJudge) follow(at pairing, runs bool) {
	if !runs {
		delete(v.since, at)
		return
	}
	if v.since[at].IsZero() {
		v.since[at] = v.sim.clock.now
	}
	if v.ran[at] || v.sim.clock.now.Sub(v.since[at]) < reallyRan {
		return
	}
	v.ran[at] = true
	if at.owner != "" {
		v.about(at.owner).launched = nil // the count begins anew
		return
	}
	for owner := range v.madeFor[at.claim] {
		if a := v.about(owner); len(a.launched) > 0 {
			a.launched = a.launched[1:]
		}
	}
}
