package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// span is from one time to another.
type span struct{ first, last time.Time }

// repool notes that somebody changes which pool a claim says it is of.
func (j *judge) repool(claim types.UID) {
	at := j.repooled[claim]
	if at.first.IsZero() {
		at.first = j.sim.clock.now
	}
	at.last = j.sim.clock.now
	j.repooled[claim] = at
}

// oddPool reports whether whoever made the other claim may not have known of which pool the claim is: somebody had
// changed that, or had just changed it back.
func (j *judge) oddPool(claim, made *v1.NodeClaim) bool {
	at, moved := j.repooled[claim.UID]
	when := made.CreationTimestamp.Time
	return moved && when.After(at.first.Add(-time.Second)) && when.Before(at.last.Add(longestLag))
}

// created: a replica has made a claim. The number of a pool's nodes stays within its limit.
func (j *judge) created(r *replica, obj client.Object) {
	claim, ok := obj.(*v1.NodeClaim)
	if !ok {
		return
	}
	j.unused.made(r, claim)
	if claim.Annotations[cluster.ReplacesAnnotation] == "" {
		j.provisioned = j.sim.clock.now
	}
	knows := r.current.knows
	if r.stale {
		j.foreign[claim.UID] = true
	} else {
		j.knew[claim.UID] = knows
	}
	pool, ok := find[*v1.NodePool](j.sim.store, pools, claim.Labels[v1.NodePoolLabelKey])
	if !ok {
		return
	}
	limit, has := pool.Spec.Limits["nodes"]
	if !has {
		return
	}
	all, known, odd := int64(0), int64(0), false
	for _, c := range list[*v1.NodeClaim](j.sim.store, claims) {
		if c.Labels[v1.NodePoolLabelKey] != pool.Name {
			continue
		}
		if all++; !j.unknown(knows, c) {
			known++
		}
		odd = odd || j.oddPool(c, claim)
	}
	if j.asks(withinLimits); all > limit.Value() {
		j.charge(withinLimits,
			[]excuseReason{
				is(cutOff, r.stale),
				is("another replica's claims were not known yet", known <= limit.Value()),
				is("somebody had changed of which pool a claim says it is", odd),
			},
			"NodeClaim %s is number %d of pool %s, whose limit is %s nodes", claim.Name, known, pool.Name,
			limit.String())
	}
}

// launched: the cloud runs a new machine. A pool's machines stay within its limits, and a claim has one machine. The
// limits were asked when the claim was made, so what was known then counts.
func (j *judge) launched(claim *v1.NodeClaim, m *machine) {
	s := j.sim
	j.unused.start(claim.UID)
	now, there := find[*v1.NodeClaim](s.store, claims, claim.Name)
	if !there || now.UID != claim.UID {
		return // whoever asked has an old view; the machine will be found and ended
	}
	pool, ok := find[*v1.NodePool](s.store, pools, claim.Labels[v1.NodePoolLabelKey])
	if !ok {
		return
	}
	mine, unknown, odd := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		if c.Labels[v1.NodePoolLabelKey] == pool.Name {
			mine[string(c.UID)], unknown[string(c.UID)] = true, j.unknown(j.knew[claim.UID], c)
			odd[string(c.UID)] = j.oddPool(c, claim)
		}
	}
	all, known, sure, alike := amount{}, amount{}, amount{}, 0
	for _, o := range s.cloud.machines {
		if id := o.instance.ClaimUID; mine[id] {
			all = all.add(roomOf(o.instance.Capacity))
			if !unknown[id] {
				known = known.add(roomOf(o.instance.Capacity))
			}
			if !unknown[id] && !odd[id] {
				sure = sure.add(roomOf(o.instance.Capacity))
			}
		}
		if o.instance.ClaimUID == m.instance.ClaimUID {
			alike++
		}
	}
	if limit, has := pool.Spec.Limits[corev1.ResourceCPU]; has {
		if j.asks(withinLimits); all.cpu > limit.MilliValue() {
			j.charge(withinLimits,
				[]excuseReason{
					is(cutOff, j.foreign[claim.UID]),
					is("another replica's claims were not known yet", known.cpu <= limit.MilliValue()),
					is("somebody has just changed whose a claim is", sure.cpu <= limit.MilliValue()),
				},
				"with %s the machines of pool %s have %dm CPU, the limit is %s",
				m.instance.ProviderID, pool.Name, known.cpu, limit.String())
		}
	}
	if j.asks("a claim has one machine"); alike > 1 {
		s.fail("a claim has one machine", "NodeClaim %s has %d", claim.Name, alike)
	}
}
