package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// What people ask of the program beyond the contract.
const (
	dryRunAnnotation = "tenon.sh/dry-run"
	canaryAnnotation = "tenon.sh/drift-strategy"
	softAnnotation   = "tenon.sh/soft-expiry"
)

func theClass() cluster.ClassRef {
	return cluster.ClassRef{Group: classGroup, Kind: classKind, Name: className}
}

// drawDisruption draws what a pool says about the disruption of its nodes.
func (s *Sim) drawDisruption(p *v1.NodePool) {
	c := s.clock
	care := map[string]string{}
	if c.chance(0.1) {
		care[dryRunAnnotation] = "true"
	}
	if c.chance(0.2) {
		care[canaryAnnotation] = "canary"
	}
	if expire := p.Spec.Template.Spec.ExpireAfter; !expire.IsNever() && c.chance(0.5) {
		care[softAnnotation] = c.between(20*time.Second, *expire.Duration/2).Truncate(time.Second).String()
	}
	if len(care) > 0 {
		p.Annotations = care
	}
}

// newImage is a new image for the NodeClass: machines that run have drifted.
func (s *Sim) newImage() {
	s.cloud.image++
	s.trace.note("someone: gives the NodeClass image %d", s.cloud.image)
	for _, r := range s.replicas {
		if !r.stale {
			r.book.NoteNodeClassVersion(theClass(), fmt.Sprint(s.cloud.image))
			r.poke()
		}
	}
}

// driftAnswers is what the cloud says of drift to a replica, between two plans.
type driftAnswers struct{ r *replica }

// Drifted implements ingest.DriftAsker.
func (i driftAnswers) Drifted(_ context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	s := i.r.sim
	if s.strikes("launchError", s.rates.launchError) {
		return "", errors.New("the cloud has a bad day")
	}
	m := s.cloud.find(claim.Status.ProviderID)
	switch {
	case m == nil:
		return "", &cloudprovider.NotFoundError{ProviderID: claim.Status.ProviderID}
	case m.image != s.cloud.image || s.cloud.fickle:
		return "ImageDrift", nil
	}
	return "", nil
}

// editAnyPool is somebody who edits a pool.
func (s *Sim) editAnyPool(what string, change func(*v1.NodePool)) {
	pool, ok := s.any(pools).(*v1.NodePool)
	if !ok {
		return
	}
	s.trace.note("someone: changes the %s of pool %s", what, pool.Name)
	edit(s.store, pools, keyOf(pool), pool.UID, func(p *v1.NodePool) {
		p.Generation++
		change(p)
	})
}

// changeTemplate makes a pool's nodes drift.
func (s *Sim) changeTemplate() {
	s.editAnyPool("template", func(p *v1.NodePool) {
		p.Spec.Template.Annotations = map[string]string{"example.com/edition": fmt.Sprint(s.clock.number(1, 3))}
	})
}

// changeRequirements makes those drift that are no longer what the pool asks for.
func (s *Sim) changeRequirements() {
	s.editAnyPool("requirements", func(p *v1.NodePool) {
		p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{
			Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn,
			Values: pick(s.clock, [][]string{{v1.CapacityTypeOnDemand}, {v1.CapacityTypeSpot}}),
		}}
	})
}

// oldHashes is what a program of another version leaves behind: hashes that were computed in another way.
func (s *Sim) oldHashes() {
	pool, ok := s.any(pools).(*v1.NodePool)
	if !ok {
		return
	}
	s.trace.note("someone: writes hashes of another version for pool %s", pool.Name)
	old := func(have map[string]string) map[string]string {
		out := maps.Clone(have)
		if out == nil {
			out = map[string]string{}
		}
		out[v1.NodePoolHashAnnotationKey], out[v1.NodePoolHashVersionAnnotationKey] = "1", "v2"
		return out
	}
	edit(s.store, pools, keyOf(pool), pool.UID, func(p *v1.NodePool) { p.Annotations = old(p.Annotations) })
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		if c.Labels[v1.NodePoolLabelKey] == pool.Name {
			edit(s.store, claims, keyOf(c), c.UID, func(c *v1.NodeClaim) { c.Annotations = old(c.Annotations) })
		}
	}
}

// changePrices makes some of what the cloud sells dearer, and some cheaper.
func (s *Sim) changePrices() {
	s.trace.note("cloud: has new prices")
	changed := make([]*cloudprovider.InstanceType, 0, len(s.cloud.types))
	for _, t := range s.cloud.types {
		copied := *t
		copied.Offerings = slices.Clone(t.Offerings)
		for i := range copied.Offerings {
			copied.Offerings[i].Price *= 0.7 + 0.6*s.clock.random.Float64()
		}
		changed = append(changed, &copied)
	}
	s.cloud.types, s.cloud.priced = changed, s.clock.now
}

// countMove notes what has been done for the sake of moves.
func (s *Sim) countMove(c command.Command) {
	switch c := c.(type) {
	case command.Fence:
		s.seen["Fence "+string(c.Reason)]++
	case command.DeleteClaim:
		s.seen["DeleteClaim "+string(c.Reason)]++
	case command.CreateClaim:
		if c.Replaces != "" {
			s.seen["replacement"]++
		}
	}
}

// leaving: a node goes, be it in a move. What goes to save money is dearer than what comes. What a stale replica ends
// counts among what goes; it isn't judged, since nobody can tell what was made for the move that it does not know.
func (j *judge) leaving(r *replica, claim *v1.NodeClaim, reason command.Reason) {
	s, move := j.sim, claim.Annotations[cluster.MoveAnnotation]
	if move == "" {
		return
	}
	if j.before[move] == nil {
		j.before[move] = make(map[types.UID]bool)
		for _, p := range list[*corev1.Pod](s.store, pods) {
			j.before[move][p.UID] = true
		}
	}
	if s.cloud.find(claim.Status.ProviderID) == nil {
		j.died[move] = true
	}
	if r.stale {
		j.leftByStale[move] += s.priceOf(claim)
		return
	}
	j.left[move] += s.priceOf(claim)
	going, coming := j.balance(r, move)
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		if c.UID != claim.UID && j.together(c.Annotations[cluster.MoveAnnotation], move) &&
			c.DeletionTimestamp == nil && !j.unknown(r.current.knows, c) {
			going += s.priceOf(c)
			if s.cloud.find(c.Status.ProviderID) == nil {
				j.died[move] = true
			}
		}
	}
	if reason != command.Underutilized {
		return
	}
	if j.asks(neverDearer); coming <= going+rounding {
		return
	}
	j.charge(neverDearer, []excuseReason{
		{"a machine has died, and nobody knows what it would cost", func() bool { return j.lostMachine(move) }},
		{"somebody else has ended a part of the move", func() bool { return j.disturbed(move) }},
		is("a node of the move was interrupted, and what was made is for its pods, too", j.takenFrom[move]),
		// Catalogs are asked for every five minutes, and what was begun goes on.
		is("prices have changed just now", s.clock.now.Sub(s.cloud.priced) <= 6*time.Minute),
		{"pods wait for a place, and may need what was made", r.someWait},
		is("a pod has just found a place", s.clock.now.Sub(j.bound) <= planning),
	}, "the move %s replaces nodes for %.3f by nodes for %.3f", move, going, coming)
}

// ending: a replica begins to end a claim that goes in a move. By what it knows, what takes its place is there, or is
// no longer needed.
func (j *judge) ending(r *replica, c command.DeleteClaim) {
	claim, ok := r.cache[claims][c.Claim].(*v1.NodeClaim)
	if !ok || claim.Annotations[cluster.MoveAnnotation] == "" || c.Reason != command.Underutilized &&
		c.Reason != command.Drifted {
		return
	}
	move := claim.Annotations[cluster.MoveAnnotation]
	const promise = "replacements are ready before the first eviction"
	j.asks(promise)
	for _, name := range slices.Sorted(maps.Keys(r.cache[claims])) {
		other := r.cache[claims][name].(*v1.NodeClaim)
		if other.Annotations[cluster.ReplacesAnnotation] == move && !meta.IsStatusConditionTrue(other.Status.Conditions,
			v1.ConditionTypeInitialized) {
			j.charge(promise, []excuseReason{
				{"a static pool has another in its place", func() bool { return r.replacedAgain(claim, move) }},
				{"a static pool has as many nodes without it", func() bool {
					return other.DeletionTimestamp != nil && r.fullWithout(claim)
				}},
				{"there is room elsewhere", func() bool { return r.roomElsewhere(c.Node, move) }},
				is(cutOff, r.stale),
			}, "%s ends %s of the move %s, and %s is not there", r, claim.Name, move, name)
		}
	}
}

// replacedAgain reports whether the claim's pool is static and a replacement that was made for the move later is up:
// such a pool replaces one node by one.
func (r *replica) replacedAgain(claim *v1.NodeClaim, move string) bool {
	pool, ok := r.cache[pools][claim.Labels[v1.NodePoolLabelKey]].(*v1.NodePool)
	if !ok || pool.Spec.Replicas == nil {
		return false
	}
	for _, obj := range r.cache[claims] {
		other := obj.(*v1.NodeClaim)
		if other.Annotations[cluster.ReplacesAnnotation] == move && other.DeletionTimestamp == nil &&
			meta.IsStatusConditionTrue(other.Status.Conditions, v1.ConditionTypeInitialized) {
			return true
		}
	}
	return false
}

// fullWithout reports whether the claim's pool is static and has, as far as the replica knows, as many other nodes that
// are up as it asks for.
func (r *replica) fullWithout(claim *v1.NodeClaim) bool {
	pool, ok := r.cache[pools][claim.Labels[v1.NodePoolLabelKey]].(*v1.NodePool)
	if !ok || pool.Spec.Replicas == nil {
		return false
	}
	up := int64(0)
	for _, obj := range r.cache[claims] {
		other := obj.(*v1.NodeClaim)
		if other.UID != claim.UID && other.DeletionTimestamp == nil && other.Labels[v1.NodePoolLabelKey] == pool.Name &&
			meta.IsStatusConditionTrue(other.Status.Conditions, v1.ConditionTypeInitialized) {
			up++
		}
	}
	return up >= *pool.Spec.Replicas
}

// planning is longer than a plan takes: who waited for a place when it was made may have one when it is carried out.
const planning = 5 * time.Second

// stays reports whether a pod stays on its node until the node's time is up, so that no room is kept for it before.
func (s *Sim) stays(p *corev1.Pod) bool {
	return staysBy(p, slices.Values(list[*policyv1.PodDisruptionBudget](s.store, guards)))
}

// stays is the same by the disruption budgets that the replica knows of.
func (r *replica) stays(p *corev1.Pod) bool {
	return staysBy(p, func(yield func(*policyv1.PodDisruptionBudget) bool) {
		for _, obj := range r.cache[guards] {
			if !yield(obj.(*policyv1.PodDisruptionBudget)) {
				return
			}
		}
	})
}

func staysBy(p *corev1.Pod, budgets iter.Seq[*policyv1.PodDisruptionBudget]) bool {
	if p.Annotations[v1.DoNotDisruptAnnotationKey] != "" ||
		tolerates(p, []corev1.Taint{v1.DisruptedNoScheduleTaint()}) {
		return true
	}
	for g := range budgets {
		if selects(g, p) && g.Status.DisruptionsAllowed == 0 {
			return true
		}
	}
	return false
}

// knows reports whether the replica has seen the pool as it is.
func (s *Sim) knows(r *replica, pool *v1.NodePool) bool {
	have, ok := r.cache[pools][pool.Name].(*v1.NodePool)
	return ok && have.ResourceVersion == pool.ResourceVersion
}

// priceOf is what the machine of a claim costs now.
func (s *Sim) priceOf(claim *v1.NodeClaim) float64 {
	m := s.cloud.find(claim.Status.ProviderID)
	if m == nil {
		return 0
	}
	for _, t := range s.cloud.types {
		for i := range t.Offerings {
			if o := &t.Offerings[i]; t.Name == m.instance.Type &&
				o.Labels[corev1.LabelTopologyZone] == m.instance.Labels[corev1.LabelTopologyZone] &&
				o.Labels[v1.CapacityTypeLabelKey] == m.instance.Labels[v1.CapacityTypeLabelKey] {
				return o.Price
			}
		}
	}
	return 0
}

// driftedAndMayGo reports whether a claim is not what its pool and class ask for although nothing stands in the way of
// a new one.
func (s *Sim) driftedAndMayGo(claim *v1.NodeClaim) bool {
	pool, ok := find[*v1.NodePool](s.store, pools, claim.Labels[v1.NodePoolLabelKey])
	if !ok || pool.Spec.Limits != nil || pool.DeletionTimestamp != nil || pool.Spec.Replicas != nil &&
		!s.policy.StaticCapacity {
		return false
	}
	for _, p := range s.tenantsOn(claim.Status.NodeName) {
		// It came before the node had its taints, and may find no other place.
		if !isDone(p) && !tolerates(p, v1.CoreTaints(claim.Spec.Taints)) {
			return false
		}
	}
	m := s.cloud.find(claim.Status.ProviderID)
	drifted := m != nil && m.image != s.cloud.image ||
		claim.Annotations[v1.NodePoolHashAnnotationKey] != pool.Annotations[v1.NodePoolHashAnnotationKey]
	s.forgiven.asks(driftedGo)
	return drifted && !s.forgiven.spares(driftedGo, is("DaemonSets leave its pods no room on a new node",
		len(s.daemons) > 0))
}

// lasting is a duration as it is read from a text: the API server has nothing else.
func lasting(d time.Duration) v1.NillableDuration {
	return v1.NillableDuration{Duration: &d, Raw: d.String()}
}
