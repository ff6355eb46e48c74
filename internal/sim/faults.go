package sim

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// faultRates is how likely things are to go wrong; all zero once the faults are over.
type faultRates struct {
	// Of a request to the API server.
	timeoutBefore, timeoutAfter, tooMany, internal, conflict float64
	// Of a request to the cloud.
	throttled, launchError, cloudAnswerLost float64
	// Of a machine, of a pod and of a plan.
	neverComes, bare, stuckPod, slowPlans float64
}

// strikes draws whether a fault happens, and counts it.
func (s *Sim) strikes(name string, rate float64) bool {
	hit := s.clock.chance(rate)
	if hit {
		s.seen["fault "+name]++
	}
	return hit
}

// drawFaultRates draws what goes wrong in the time of faults. Every kind of fault has days off, so that each is also
// seen alone.
func (s *Sim) drawFaultRates(faultTime time.Duration) {
	c := s.clock
	rate := func(most float64) float64 {
		if c.chance(0.5) {
			return 0
		}
		return c.random.Float64() * most
	}
	s.rates = faultRates{
		timeoutBefore: rate(0.1), timeoutAfter: rate(0.1), tooMany: rate(0.1), internal: rate(0.1), conflict: rate(0.3),
		throttled: rate(0.2), launchError: rate(0.2), cloudAnswerLost: rate(0.3),
		neverComes: rate(0.3), bare: rate(0.3), stuckPod: rate(0.1), slowPlans: rate(0.5),
	}
	for _, f := range append(s.faults(), s.plantings()...) {
		if c.chance(0.65) {
			continue
		}
		for range c.number(1, 2) {
			c.after(c.between(time.Second, faultTime), func() {
				before := s.trace.count
				if f.do(); s.trace.count > before { // some have nobody to strike
					s.seen["fault "+f.name]++
				}
			})
		}
	}
}

type fault struct {
	name string
	do   func()
}

// faults are the things that happen at some moment.
func (s *Sim) faults() []fault {
	return []fault{
		{"crash", s.crash}, {"crash", s.crash}, {"race for the lease", s.loseLeaseUnnoticed},
		{"broken watch", s.breakWatch},
		{"broken watch", s.breakWatch},
		{"slow watch", s.slowWatch}, {"sold out", s.sellOut}, {"sold out", s.sellOut}, {"machine dies", s.killMachine},
		{"kubelet sleeps", s.sleepKubelet},
		{"node deleted", s.deleteNode}, {"claim deleted", s.deleteClaim}, {"pool deleted", s.deletePool},
		{"pod deleted", s.deletePod},
		{"claim removed by force", s.dropClaimFinalizer}, {"node removed by force", s.dropNodeFinalizer},
		{"pool changed", s.changePool},
		{"claim made by hand", s.makeClaim}, {"node fenced by hand", s.fenceNode}, {"new image", s.newImage},
		{"template changed", s.changeTemplate},
		{"requirements changed", s.changeRequirements}, {"prices change", s.changePrices},
		{"hashes of another version", s.oldHashes}, {"spot interruption", s.interruptSpot},
		{"spot interruption", s.interruptSpot},
		{"rebalance recommendation", s.adviseRebalance}, {"machine impaired", s.impairMachine},
		{"node agent", s.letAgentLoose},
	}
}

// calm ends all faults, and takes away what would keep nodes from ever going.
func (s *Sim) calm() {
	s.trace.note("the storm is over")
	s.rates, s.mistakes = faultRates{}, mistakes{}
	clear(s.cloud.soldOut)
	s.unfenceByHand()
	s.calmAdversaries()
	s.forgetAdvice()
	s.stopAgents()
	for _, r := range slices.Clone(s.replicas[:max(0, len(s.replicas)-1)]) {
		r.kill()
	}
	if len(s.replicas) == 0 {
		s.start()
	}
	for k := range s.replicas[0].streams {
		s.replicas[0].streams[k].lag = 0
	}
	for _, g := range list[*policyv1.PodDisruptionBudget](s.store, guards) {
		edit(s.store, guards, keyOf(g), g.UID, func(g *policyv1.PodDisruptionBudget) {
			none := intstr.FromInt32(0)
			g.Spec.MinAvailable, g.Spec.MaxUnavailable = &none, nil
			g.Generation++
		})
	}
	for _, m := range s.cloud.machines {
		if m.asleep {
			s.wakeKubelet(m)
		}
	}
	for _, pool := range list[*v1.NodePool](s.store, pools) {
		edit(s.store, pools, keyOf(pool), pool.UID, func(p *v1.NodePool) {
			p.Spec.Template.Spec.ExpireAfter = v1.NeverDuration()
			delete(p.Annotations, dryRunAnnotation)
			liftBudgets(p)
			p.Generation++
		})
	}
	for _, set := range list[*appsv1.ReplicaSet](s.store, sets) {
		edit(s.store, sets, keyOf(set), set.UID, func(set *appsv1.ReplicaSet) {
			delete(set.Spec.Template.Annotations, v1.DoNotDisruptAnnotationKey)
		})
	}
	for _, pod := range list[*corev1.Pod](s.store, pods) {
		edit(s.store, pods, keyOf(pod), pod.UID, func(p *corev1.Pod) {
			delete(p.Annotations, v1.DoNotDisruptAnnotationKey)
		})
		if pod.DeletionTimestamp != nil {
			s.tend(pod) // kubelets try again what got stuck
		}
	}
}

// leader is the replica that has the lease; nil while there is none.
func (s *Sim) leader() *replica {
	if len(s.replicas) == 0 {
		return nil
	}
	return s.replicas[len(s.replicas)-1]
}

// crash is the leader's sudden death. Another takes over after a while.
func (s *Sim) crash() {
	r := s.leader()
	if r == nil || len(s.replicas) > 1 {
		return
	}
	r.kill()
	s.clock.after(s.clock.between(10*time.Millisecond, 20*time.Second), func() {
		if len(s.replicas) == 0 {
			s.start()
		}
	})
}

// loseLeaseUnnoticed is when the leader loses the lease without noticing: for a while it acts on what it last saw,
// beside its successor. In half of these cases its clock is right and it begins nothing more, but what it has begun
// goes on; in the others its clock is late.
func (s *Sim) loseLeaseUnnoticed() {
	old := s.leader()
	if old == nil || len(s.replicas) > 1 {
		return
	}
	old.stale, old.lease = true, s.clock.now
	if s.clock.chance(0.5) {
		old.lease = s.clock.now.Add(s.clock.between(time.Second, 10*time.Second))
	}
	s.trace.note("%s: is cut off", old)
	for k := range old.streams {
		if s.clock.chance(0.7) {
			old.streams[k].fail(time.Hour)
		}
	}
	s.start()
	s.clock.after(s.clock.between(time.Second, 20*time.Second), old.kill)
}

func (s *Sim) anyStream() *stream {
	r := s.leader()
	if r == nil {
		return nil
	}
	return &r.streams[s.clock.random.IntN(int(kinds))]
}

// breakWatch loses some events; a list follows.
func (s *Sim) breakWatch() {
	if w := s.anyStream(); w != nil {
		d := s.clock.between(100*time.Millisecond, 30*time.Second)
		s.trace.note("%s: the watch of %s is broken for %s", w.r, w.kind, d.Round(time.Millisecond))
		w.fail(d)
	}
}

// slowWatch makes a cache stale.
func (s *Sim) slowWatch() {
	if w := s.anyStream(); w != nil {
		w.lag = s.clock.between(100*time.Millisecond, 15*time.Second)
		s.trace.note("%s: the watch of %s is %s behind", w.r, w.kind, w.lag.Round(time.Millisecond))
		s.clock.after(s.clock.between(5*time.Second, time.Minute), func() { w.lag = 0 })
	}
}

// sellOut takes capacity away, and gives it back later.
func (s *Sim) sellOut() {
	var out []cloudprovider.OfferingRef
	most := s.clock.random.Float64()
	for _, t := range s.cloud.types {
		for i := range t.Offerings {
			if ref := refOf(t.Name, &t.Offerings[i]); s.clock.chance(most) {
				out = append(out, ref)
				s.cloud.soldOut[ref] = true
			}
		}
	}
	s.trace.note("cloud: %d offerings are sold out", len(out))
	s.clock.after(s.clock.between(5*time.Second, 3*time.Minute), func() {
		for _, ref := range out {
			delete(s.cloud.soldOut, ref)
		}
	})
}

// killMachine is a machine that dies by itself.
func (s *Sim) killMachine() {
	if len(s.cloud.machines) == 0 {
		return
	}
	m := pick(s.clock, s.cloud.machines)
	if m.instance.Terminating {
		return
	}
	s.trace.note("fate: %s dies", m.instance.ProviderID)
	s.cloud.vanish(m)
}

func (s *Sim) any(k kind) client.Object {
	all := list[client.Object](s.store, k)
	if len(all) == 0 {
		return nil
	}
	return pick(s.clock, all)
}

// deleteNode is somebody who deletes a Node by hand; deleteClaim, deletePool and deletePod do the same.
func (s *Sim) deleteNode() { s.deleteAny(nodes) }

func (s *Sim) deleteClaim() { s.deleteAny(claims) }

func (s *Sim) deletePool() {
	if len(list[*v1.NodePool](s.store, pools)) > 1 {
		s.deleteAny(pools)
	}
}

func (s *Sim) deletePod() {
	if pod, ok := s.any(pods).(*corev1.Pod); ok {
		s.trace.note("someone: deletes pod %s", pod.Name)
		s.store.endPod(pod, nil)
	}
}

func (s *Sim) deleteAny(k kind) {
	if obj := s.any(k); obj != nil {
		s.trace.note("someone: deletes %s %s", k, obj.GetName())
		s.store.erase(obj)
	}
}

// dropClaimFinalizer is somebody who deletes a claim and does not want to wait; dropNodeFinalizer the same for a node.
func (s *Sim) dropClaimFinalizer() { s.force(claims) }

func (s *Sim) dropNodeFinalizer() { s.force(nodes) }

func (s *Sim) force(k kind) {
	obj := s.any(k)
	if obj == nil {
		return
	}
	s.trace.note("someone: deletes %s %s by force", k, obj.GetName())
	s.store.erase(obj)
	if now := s.store.get(k, keyOf(obj)); now != nil {
		next := now.DeepCopyObject().(client.Object)
		next.SetFinalizers(nil)
		s.store.write(next)
	}
}

// changePool is somebody who edits a pool.
func (s *Sim) changePool() {
	pool, ok := s.any(pools).(*v1.NodePool)
	if !ok {
		return
	}
	s.trace.note("someone: changes pool %s", pool.Name)
	edit(s.store, pools, keyOf(pool), pool.UID, func(p *v1.NodePool) {
		p.Generation++
		if p.Spec.Replicas != nil {
			replicas := int64(s.clock.number(0, 4))
			p.Spec.Replicas = &replicas
			return
		}
		switch s.clock.number(0, 2) {
		case 0:
			if p.Spec.Limits != nil {
				p.Spec.Limits[corev1.ResourceCPU] = *apiresource.NewQuantity(100, apiresource.DecimalSI)
			}
		case 1:
			p.Spec.Disruption.ConsolidateAfter = lasting(s.clock.between(0, time.Minute).Truncate(time.Second))
		case 2:
			p.Spec.Template.Annotations = map[string]string{"example.com/changed": "yes"}
		}
	})
}
