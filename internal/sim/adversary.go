package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// adversary is somebody who does what nobody should: by mistake, by a bad script, or on purpose. Each undoes it when
// the faults are over, so that the cluster can come to rest.
type adversary struct {
	name string
	do   func()
}

// adversaries are all of them. The first kind is about nodes and claims, the second about what is read, the third about
// what is written into objects.
func (s *Sim) adversaries() []adversary {
	return []adversary{
		{name: "copied node", do: s.copyNode},
		{name: "duplicate node", do: s.joinTwice},
		{name: "all claims gone", do: s.loseAllClaims},
		{name: "namesake cluster", do: s.namesakes},
		{name: "stale first list of claims", do: func() { s.staleFirstList(claims) }},
		{name: "stale first list of nodes", do: func() { s.staleFirstList(nodes) }},
		{name: "stale first list of pods", do: func() { s.staleFirstList(pods) }},
		{name: "clock jumps", do: s.jumpClock},
		{name: "clock that is wrong from the start", do: s.startWithWrongClock},
		{name: "foreign finalizer on a node", do: func() { s.holdObject(nodes) }},
		{name: "foreign finalizer on a claim", do: func() { s.holdObject(claims) }},
		{name: "foreign finalizer on a pod", do: func() { s.holdObject(pods) }},
		{name: "finalizer taken off a claim", do: func() { s.dropFinalizers(claims) }},
		{name: "finalizer taken off a node", do: func() { s.dropFinalizers(nodes) }},
		{name: "labels of a node changed", do: s.relabelNode},
		{name: "labels of a claim changed", do: s.relabelClaim},
		{name: "garbage in annotations", do: s.writeGarbage},
		{name: "hostile pods", do: s.hostilePods},
		{name: "hostile pool", do: s.hostilePool},
		{name: "DaemonSets", do: s.drawDaemonSets},
	}
}

// adversaryState is what adversaries remember.
type adversaryState struct {
	random *rand.Rand // their own, so that a seed without them plays as before
	// false are Nodes that they have made, held are objects with their finalizer, and undo takes back what else they
	// did.
	false  []string
	undo   []func()
	count  int
	ends   []orphanEnd // machines of nobody that were ended before a person had confirmed it
	buried bool
	// confirmed is when a person said that machines of nobody may be ended; zero before that.
	confirmed time.Time
	// skew is by how much the clock of a replica that begins is wrong.
	skew time.Duration
	// only is the adversary that comes, however likely; empty for any.
	only string
}

const foreignFinalizer = "example.com/hold"

// drawAdversaries draws who comes in the time of faults. In half of the histories nobody does.
func (s *Sim) drawAdversaries(faultTime time.Duration) {
	random := s.adversaryState.random
	if s.adversaryState.only == "" && random.Float64() < 0.5 {
		return
	}
	for _, a := range s.adversaries() {
		asked := a.name == s.adversaryState.only
		if s.adversaryState.only != "" && !asked || s.adversaryState.only == "" && random.Float64() < 0.8 {
			continue
		}
		for range 1 + random.IntN(2) {
			at := time.Duration(random.Int64N(int64(faultTime)))
			s.clock.after(at, func() {
				before := s.trace.count
				if a.do(); s.trace.count > before {
					s.seen["adversary "+a.name]++
				}
			})
		}
	}
}

// calmAdversaries has them take back what they did.
func (s *Sim) calmAdversaries() {
	for _, name := range s.adversaryState.false {
		if node, ok := find[*corev1.Node](s.store, nodes, name); ok {
			s.trace.note("someone: deletes %s, which was never a machine's", name)
			s.store.erase(node)
		}
	}
	s.watchOrphans()
	for _, undo := range slices.Backward(s.adversaryState.undo) { // the first one knows how it was before them all
		undo()
	}
	for _, k := range []kind{pods, claims, nodes} {
		for _, obj := range list[client.Object](s.store, k) {
			s.letGo(k, keyOf(obj))
		}
	}
}

// holdObject is a foreign controller that has its own reasons to keep an object for a while.
func (s *Sim) holdObject(k kind) {
	obj := s.any(k)
	if obj == nil || obj.GetDeletionTimestamp() != nil { // the API server takes no finalizer for what is being deleted
		return
	}
	s.trace.note("someone: holds %s %s", k, obj.GetName())
	next := obj.DeepCopyObject().(client.Object)
	next.SetFinalizers(append(slices.Clone(next.GetFinalizers()), foreignFinalizer))
	s.store.write(next)
	key := keyOf(obj)
	s.clock.after(s.clock.between(5*time.Second, 3*time.Minute), func() { s.letGo(k, key) })
}

// letGo takes the foreign finalizer off an object.
func (s *Sim) letGo(k kind, key string) {
	obj := s.store.get(k, key)
	if obj == nil || !slices.Contains(obj.GetFinalizers(), foreignFinalizer) {
		return
	}
	s.trace.note("someone: lets go of %s %s", k, obj.GetName())
	next := obj.DeepCopyObject().(client.Object)
	next.SetFinalizers(slices.DeleteFunc(slices.Clone(next.GetFinalizers()), func(f string) bool {
		return f == foreignFinalizer
	}))
	s.store.write(next)
	if pod, ok := next.(*corev1.Pod); ok && pod.DeletionTimestamp != nil && isDone(pod) {
		s.store.remove(pod)
	}
}

// finish takes a pod away whose containers have ended. While somebody holds it, it stays as one that has failed.
func (s *Sim) finish(pod *corev1.Pod) {
	if len(pod.Finalizers) == 0 {
		s.store.remove(pod)
		return
	}
	edit(s.store, pods, keyOf(pod), pod.UID, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
}

// dropFinalizers is somebody who takes the program's finalizer off an object that lives on.
func (s *Sim) dropFinalizers(k kind) {
	obj := s.any(k)
	if obj == nil || obj.GetDeletionTimestamp() != nil || !slices.Contains(obj.GetFinalizers(),
		v1.TerminationFinalizer) {
		return
	}
	s.trace.note("someone: takes the finalizer off %s %s", k, obj.GetName())
	next := obj.DeepCopyObject().(client.Object)
	next.SetFinalizers(nil)
	s.store.write(next)
}

// relabelNode is somebody who changes what a node's labels say of it. They put it right in the end.
func (s *Sim) relabelNode() {
	node, ok := s.any(nodes).(*corev1.Node)
	if !ok {
		return
	}
	key := pick(s.clock, []string{v1.NodePoolLabelKey, corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone,
		v1.CapacityTypeLabelKey,
		v1.NodeClassLabelKey(classGroup, classKind)})
	old, had := node.Labels[key]
	if !had {
		return
	}
	s.trace.note("someone: changes the label %s of %s", key, node.Name)
	gone := s.clock.chance(0.5)
	set := func(value string, there bool) {
		edit(s.store, nodes, node.Name, node.UID, func(n *corev1.Node) {
			if n.Labels[key] = value; !there {
				delete(n.Labels, key)
			}
		})
	}
	set("other", !gone)
	s.adversaryState.undo = append(s.adversaryState.undo, func() { set(old, true) })
}

// relabelClaim is somebody who changes what a claim's labels say of it.
func (s *Sim) relabelClaim() {
	claim, ok := s.any(claims).(*v1.NodeClaim)
	if !ok {
		return
	}
	key := pick(s.clock, []string{v1.NodePoolLabelKey, corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone,
		v1.CapacityTypeLabelKey})
	old, had := claim.Labels[key]
	if !had {
		return
	}
	s.trace.note("someone: changes the label %s of claim %s", key, claim.Name)
	gone := s.clock.chance(0.5)
	set := func(value string, there bool) {
		if key == v1.NodePoolLabelKey {
			s.judge.repool(claim.UID)
		}
		edit(s.store, claims, claim.Name, claim.UID, func(c *v1.NodeClaim) {
			if c.Labels[key] = value; !there {
				delete(c.Labels, key)
			}
		})
	}
	set("other", !gone)
	s.adversaryState.undo = append(s.adversaryState.undo, func() { set(old, true) })
}
