package sim

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

const (
	// handful is how often a node may be fenced within an hour. Whoever fails again and again rests for longer each
	// time, which makes seven; the rest is for what happens meanwhile.
	handful = 12
	// leftFor is how long a replacement that nobody needs may stay once its move has been given up: its pool's
	// consolidateAfter, and as long again for those that go before it.
	leftFor = 6 * time.Minute
	// sameTry is how long before the first fence of a move its replacements may have been made: the fence may have to
	// be tried again.
	sameTry = 30 * time.Second
	// rounding is by how much two ways to add the same prices up may differ.
	rounding = 1e-9
)

// fencing: a claim may begin to say why its node goes. Not again and again.
func (j *judge) fencing(r *replica, claim *v1.NodeClaim) {
	marked := meta.IsStatusConditionTrue(claim.Status.Conditions, v1.ConditionTypeDisruptionReason)
	if marked == j.marked[claim.UID] || claim.DeletionTimestamp != nil {
		return
	}
	j.marked[claim.UID] = marked
	if !marked || r.stale {
		return
	}
	const promise = "no node is fenced and opened again and again"
	j.asks(promise)
	now := j.sim.clock.now
	recent := slices.DeleteFunc(j.fences[claim.UID], func(at time.Time) bool { return now.Sub(at) > time.Hour })
	if j.fences[claim.UID] = append(recent, now); len(recent)+1 > handful {
		j.sim.fail(promise, "%s fences %s for the %d. time within an hour", r, claim.Name, len(recent)+1)
	}
}

// reopened: a node of a move that was to save money stays. If others of the move have gone, what took their place costs
// no more than they did; and what has been made for nobody goes again.
func (j *judge) reopened(r *replica, claim *v1.NodeClaim, move string) {
	s := j.sim
	if r.stale || disrupt.MoveReason(move) != command.Underutilized {
		return
	}
	left, coming := j.balance(r, move)
	if j.asks(givenUpForFree); coming <= left+rounding {
		return
	}
	if left > 0 {
		pleas := append(j.mayStay(claim), excuseReason{"somebody else has ended a part of the move", func() bool {
			return j.disturbed(move)
		}},
			excuseReason{"a stale replica has opened a part of the move", func() bool { return j.loose(move) }},
			excuseReason{"a stale replica has ended all of the move that has gone", func() bool {
				return !j.endedByLeader(move)
			}},
			excuseReason{"others of the move may still go, and be worth it", func() bool {
				return slices.ContainsFunc(list[*v1.NodeClaim](s.store, claims), func(c *v1.NodeClaim) bool {
					return j.together(c.Annotations[cluster.MoveAnnotation], move) && c.DeletionTimestamp == nil
				})
			}}, is("the planner has failed, and takes the move back", withdraws(r.current.command)),
			excuseReason{"a replacement is interrupted, and its pods need the others", func() bool {
				return slices.ContainsFunc(list[*v1.NodeClaim](s.store, claims), func(c *v1.NodeClaim) bool {
					return c.Annotations[cluster.ReplacesAnnotation] == move &&
						c.Annotations[cloudprovider.InterruptionAnnotation] != ""
				})
			}},
			excuseReason{"pods that wait are sent to what was made", func() bool {
				return coming-j.sentTo(r, move) <= left+rounding
			}})
		j.charge(givenUpForFree, pleas, "%s opens %s of the move %s, which has ended nodes for %.3f and made nodes "+
			"for %.3f",
			r, claim.Name, move, left, coming)
	}
	begun := j.begun[move]
	j.reopens[move]++
	n := j.reopens[move]
	s.clock.after(leftFor, func() {
		if j.reopens[move] == n { // the last of its nodes to be opened: what is left is asked about once
			j.leftover(move, begun)
		}
	})
}

// joins notes that nodes of moves go together, because they share what takes their place.
func (j *judge) joins(r *replica, c command.DeleteClaim) {
	claim, ok := r.cache[claims][c.Claim].(*v1.NodeClaim)
	if !ok || c.Departure == "" || claim.Annotations[cluster.MoveAnnotation] == "" {
		return
	}
	together, move := j.movedWith("together "+c.Departure), j.movedWith(claim.Annotations[cluster.MoveAnnotation])
	if together != move {
		j.movesWith[move] = together
	}
}

func (j *judge) movedWith(move string) string {
	for j.movesWith[move] != "" {
		move = j.movesWith[move]
	}
	return move
}

// together reports whether two moves share new nodes.
func (j *judge) together(a, b string) bool { return a != "" && j.movedWith(a) == j.movedWith(b) }

// balance is what a move, and those that share new nodes with it, has ended so far and what it has made, by what the
// replica knows.
func (j *judge) balance(r *replica, move string) (left, made float64) {
	for _, other := range slices.Sorted(maps.Keys(j.begun)) {
		if !j.together(other, move) {
			continue
		}
		left += j.left[other] + j.leftByStale[other]
		for _, c := range j.replacing(other) {
			if !j.unknown(r.current.knows, c) && !j.taken(move, c) {
				made += j.sim.priceOf(c)
			}
		}
	}
	return left, made
}

// loosens notes that a stale replica takes down the fence of a node that goes in a move. Its successor gives the move
// up then: it can't tell this from a person who wants the node to stay, and doesn't fight over it.
func (j *judge) loosens(r *replica, node string) {
	open, ok := r.current.command.(command.Unfence)
	if !ok || !r.stale || open.Node != node {
		return
	}
	disrupted := v1.DisruptedNoScheduleTaint()
	n, there := find[*corev1.Node](j.sim.store, nodes, node)
	move := j.moves[types.UID(open.UID)]
	if there && move != "" && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&disrupted)
	}) {
		j.loosened[move] = j.sim.clock.now
	}
}

// loose reports whether a stale replica has opened a node of this try of a move, or of one that shares new nodes with
// it.
func (j *judge) loose(move string) bool {
	for other, at := range j.loosened {
		if j.together(other, move) && !at.Before(j.begun[other]) {
			return true
		}
	}
	return false
}

// endedByLeader reports whether a leader has ended a node of a move, or of one that shares new nodes with it. If only a
// stale replica has, the leader may not know of it yet when it gives the move up.
func (j *judge) endedByLeader(move string) bool {
	for other, price := range j.left {
		if price > 0 && j.together(other, move) {
			return true
		}
	}
	return false
}

// withdraws reports whether a node is opened because nobody can verify its move any more.
func withdraws(c command.Command) bool {
	open, ok := c.(command.Unfence)
	return ok && open.BlockReason == string(disrupt.PlannerFails)
}

// sentTo is the price of the replacements of a move to which the replica has just sent pods that wait for a place:
// those stay whatever becomes of the move.
func (j *judge) sentTo(r *replica, move string) float64 {
	price := 0.0
	for _, other := range slices.Sorted(maps.Keys(j.begun)) {
		if !j.together(other, move) {
			continue
		}
		for _, c := range j.replacing(other) {
			at, sent := r.sent[c.Status.NodeName]
			if sent && !at.Before(r.current.began.Add(-planning)) && !j.unknown(r.current.knows, c) &&
				!j.taken(move, c) {
				price += j.sim.priceOf(c)
			}
		}
	}
	return price
}

// taken reports whether somebody runs on a replacement who was there before the first node of its move, or of one that
// shares new nodes with it, was ended: kube-scheduler puts pods wherever there is room. The replacement stays whatever
// becomes of the move, so that the move does not have to pay for it.
func (j *judge) taken(move string, c *v1.NodeClaim) bool {
	return slices.ContainsFunc(j.sim.tenantsOn(c.Status.NodeName), func(p *corev1.Pod) bool {
		for other, before := range j.before {
			if j.together(other, move) && !before[p.UID] {
				return false
			}
		}
		return !isDone(p)
	})
}

// lostMachine reports whether a machine of a move, or of one that shares new nodes with it, had died by itself when its
// node was ended.
func (j *judge) lostMachine(move string) bool {
	for other := range j.died {
		if j.together(other, move) {
			return true
		}
	}
	return false
}

// disturbed reports whether nodes of a move have gone for another reason: whoever looks for a place because of that may
// need what was made for the move.
func (j *judge) disturbed(move string) bool {
	there := make(map[types.UID]bool)
	for _, c := range list[*v1.NodeClaim](j.sim.store, claims) {
		there[c.UID] = c.DeletionTimestamp == nil
	}
	for _, members := range []map[types.UID]string{j.moves, j.meant} {
		for uid, other := range members {
			if _, ended := j.voluntary[uid]; j.together(other, move) && !ended && !there[uid] {
				return true
			}
		}
	}
	return false
}

// replacing are the claims that were made for this try of a move.
func (j *judge) replacing(move string) []*v1.NodeClaim {
	return slices.DeleteFunc(list[*v1.NodeClaim](j.sim.store, claims), func(c *v1.NodeClaim) bool {
		up := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionTypeInitialized)
		return c.Annotations[cluster.ReplacesAnnotation] != move || c.DeletionTimestamp != nil ||
			c.CreationTimestamp.Time.Before(j.begun[move].Add(-sameTry)) || // it is left from an earlier try
			up != nil && up.Status == metav1.ConditionTrue && up.LastTransitionTime.Time.Before(j.begun[move])
	})
}

// mayStay are the things that can happen to a node, its pods or its pool for which it has to stay whatever it costs.
func (j *judge) mayStay(claim *v1.NodeClaim) []excuseReason {
	s := j.sim
	pool, ok := find[*v1.NodePool](s.store, pools, claim.Labels[v1.NodePoolLabelKey])
	if !ok || pool.DeletionTimestamp != nil {
		return []excuseReason{is("the pool is no more", true)}
	}
	return []excuseReason{
		is("the pool has begun a dry run", pool.Annotations[dryRunAnnotation] == "true"),
		is("the machine has died", s.cloud.find(claim.Status.ProviderID) == nil),
		is("a budget may have begun to hold", comesAndGoes(pool, command.Underutilized)),
		is("prices have changed just now", s.clock.now.Sub(s.cloud.priced) <= 6*time.Minute),
		{"a pod has come that must not be disrupted", func() bool {
			return slices.ContainsFunc(s.tenantsOn(claim.Status.NodeName), s.stays)
		}},
	}
}

// leftover: a move was given up a while ago, and has not been tried again. What was made for it and carries nothing has
// gone.
func (j *judge) leftover(move string, begun time.Time) {
	s := j.sim
	if !j.begun[move].Equal(begun) || slices.Contains(slices.Collect(maps.Values(j.moves)), move) {
		return
	}
	for _, c := range j.replacing(move) {
		pool, ok := find[*v1.NodePool](s.store, pools, c.Labels[v1.NodePoolLabelKey])
		if j.asks(givenUpForFree); slices.ContainsFunc(s.tenantsOn(c.Status.NodeName), isAlive) {
			continue
		}
		j.charge(givenUpForFree, []excuseReason{
			is("the pool is no more", !ok),
			{"the pool has begun a dry run", func() bool { return pool.Annotations[dryRunAnnotation] == "true" }},
			{"the planner has failed on the claim, or on whom it was made for", func() bool {
				return j.untouchable(c, func() { j.leftover(move, begun) })
			}},
			{"it is being replaced, and the planner has failed on what comes", func() bool {
				return j.stuck(c, func() { j.leftover(move, begun) })
			}},
			{"it shows what keeps pods away, and the planner has failed on the next node for them", func() bool {
				return j.showsCause(c, func() { j.leftover(move, begun) })
			}},
			{"a pod of a node that is being deleted is to go there", func() bool {
				return s.awaited(c.Status.NodeName)
			}},
		}, "%s was made for the move %s, which was given up %s ago, and nobody is there", c.Name, move, leftFor)
	}
}

// awaited reports whether the leader keeps the node for pods that have to leave theirs: it sent them there just now,
// and a node, or its claim, is being deleted that still has some. If the planner has failed on that claim, this takes a
// while.
func (s *Sim) awaited(node string) bool {
	r := s.leader()
	if r == nil || s.clock.now.Sub(r.sent[node]) > time.Minute {
		return false
	}
	return slices.ContainsFunc(list[*corev1.Node](s.store, nodes), func(n *corev1.Node) bool {
		claim := s.claimOf(n.Name)
		deleted := n.DeletionTimestamp != nil || claim != nil && claim.DeletionTimestamp != nil
		return deleted && slices.ContainsFunc(s.tenantsOn(n.Name), isAlive)
	})
}

// stuck reports whether the claim goes in another move by now, which waits for a claim that the leader leaves alone.
func (j *judge) stuck(c *v1.NodeClaim, again func()) bool {
	move := c.Annotations[cluster.MoveAnnotation]
	return move != "" && slices.ContainsFunc(j.replacing(move), func(coming *v1.NodeClaim) bool {
		return j.untouchable(coming, again)
	})
}

// showsCause reports whether the claim is kept for pods that wait, because it shows what keeps them away, and the
// leader leaves alone all that is on its way for them: such a claim counts as before, so that no other is made for them
// that could show it.
func (j *judge) showsCause(c *v1.NodeClaim, again func()) bool {
	r := j.sim.leader()
	if r == nil || r.seen == nil {
		return false
	}
	for _, owner := range slices.Sorted(maps.Keys(r.seen.WorkloadTries)) {
		b := r.seen.WorkloadTries[owner]
		if b.Retained != c.Name {
			continue
		}
		coming := slices.DeleteFunc(slices.Clone(r.seen.Claims), func(next *cluster.Claim) bool {
			forThem := slices.ContainsFunc(next.MadeFor, func(m cluster.MadeFor) bool { return m.Owner == owner })
			return !forThem || next.Is(cluster.Initialized) || !next.Deleting.IsZero() || !r.seen.IsLeftAlone(next)
		})
		if len(coming) > 0 && len(coming) == b.ComingClaims {
			j.onceFree(r, again)
			return true
		}
	}
	return false
}

// untouchable reports whether the leader leaves the claim alone because the planner has failed on it, or on pods that
// it was made for. It is looked at again when that is over.
func (j *judge) untouchable(c *v1.NodeClaim, again func()) bool {
	r := j.sim.leader()
	if r == nil || r.seen == nil {
		return false
	}
	known := r.seen.Claim(c.Name)
	if known == nil || !r.seen.IsLeftAlone(known) {
		return false
	}
	j.onceFree(r, again)
	return true
}

// onceFree looks again some time after the replica tries again what its planner has failed on.
func (j *judge) onceFree(r *replica, again func()) {
	j.sim.clock.after(r.seen.Quarantine.Until().Sub(r.clock.Now())+leftFor, again)
}
