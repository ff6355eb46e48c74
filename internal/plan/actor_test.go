package plan_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// act carries a plan out like a perfect actuator, and lets Kubernetes do its part afterwards: daemons come, pods are
// bound to the initialized nodes that the plan has found for them. Only the first creates claims are created, if it is
// not negative: that is a crash in the middle.
func (w *world) act(p plan.Plan, creates int) {
	w.rev++
	if p.Provisioned {
		w.planned = p.Now
	}
	for _, c := range p.Commands {
		if _, ok := c.(command.CreateClaim); ok {
			if creates == 0 {
				continue
			}
			creates--
		}
		w.do(c)
	}
	w.runDaemons()
	w.bind(p.Placement.Assigned)
}

func (w *world) do(c command.Command) {
	delete(w.retry, c.Key())
	switch c := c.(type) {
	case command.CreateClaim:
		w.create(c)
	case command.Adopt:
		w.claims[c.Claim].Finalized = true
	case command.LaunchInstance:
		w.launch(w.claims[c.Claim])
	case command.Register:
		w.register(w.claims[c.Claim], w.nodes[c.Node])
		w.nodes[c.Node].KeptFor = c.KeepFor
	case command.Open:
		w.nodes[c.Node].KeptFor = ""
	case command.Initialize:
		w.nodes[c.Node].Labels = w.nodes[c.Node].Labels.With(cluster.InitializedLabel, "true")
		w.setCondition(w.claims[c.Claim], cluster.Initialized, cluster.True, "", "")
		w.judgeState(w.claims[c.Claim])
	case command.Fence:
		n := w.nodes[c.Node]
		n.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: cluster.DisruptedTaint,
			Effect: cluster.NoSchedule})
		if c.Reason != command.Requested {
			w.setCondition(w.claims[c.Claim], cluster.DisruptionReason, cluster.True, string(c.Reason), "")
			w.claims[c.Claim].Move = c.Move
		}
	case command.Unfence:
		n := w.nodes[c.Node]
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool {
			return t.Key == cluster.DisruptedTaint
		})
		claim := w.claims[c.Claim]
		claim.Conditions = slices.DeleteFunc(slices.Clone(claim.Conditions), func(c cluster.Condition) bool {
			return c.Type == cluster.DisruptionReason
		})
		claim.Move = ""
		switch {
		case c.RestUntil.IsZero():
		case c.ForSaving:
			claim.SavingRestUntil, claim.SavingRests = c.RestUntil, c.Rests
		default:
			claim.RestUntil, claim.Rests = c.RestUntil, c.Rests
		}
	case command.DeleteClaim:
		w.deleteClaim(c)
	case command.DeleteNode:
		w.deleteNode(c.Node)
	case command.Evict:
		w.evict(c)
	case command.Nominate:
		w.pods[c.UID].Nominated = c.Node
	case command.Bind:
		w.bindPod(w.pods[c.UID], c.Node)
	case command.Terminate:
		w.terminate(c)
	case command.Release:
		w.release(c)
	case command.SetPool:
		w.setPool(w.pools[c.Pool], c.Status)
	case command.SetClaim:
		w.setClaim(c)
	case command.WritePoolHash:
		w.pools[c.Pool].WrittenHash = cluster.TemplateHash{Hash: c.Hash, Version: c.Version}
	case command.WriteClaimHash:
		w.claims[c.Claim].Hash, w.claims[c.Claim].HashVersion = c.Hash, c.Version
	default:
		panic(fmt.Sprintf("a command that the model does not know: %T", c))
	}
}

// setPool writes a pool's status; of conditions that stay as they are the time stays, too, and those that are not
// written stay.
func (w *world) setPool(p *cluster.Pool, written command.PoolStatus) {
	status := asWritten(written)
	for _, c := range p.Status.Conditions {
		if !slices.ContainsFunc(status.Conditions, func(n cluster.Condition) bool { return n.Type == c.Type }) {
			status.Conditions = append(status.Conditions, c)
		}
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.Since = w.now
		for _, old := range p.Status.Conditions {
			if old.Type == c.Type && old.Status == c.Status {
				c.Since = old.Since
			}
		}
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c cluster.Condition) bool {
		return c.Status == cluster.Absent
	})
	p.Status = status
}

func (w *world) create(c command.CreateClaim) {
	if old := w.claims[c.Name]; old != nil {
		return
	}
	uid := "uid-" + c.Name
	if w.made[c.Name]++; w.made[c.Name] > 1 { // names come back, identities don't
		uid += "-" + strconv.Itoa(w.made[c.Name])
	}
	w.claims[c.Name] = &cluster.Claim{
		Name: c.Name, UID: uid, Pool: c.Pool, Created: w.now, Finalized: true, Labels: withoutLifeLabels(c.Labels),
		Requirements: c.Requirements, Taints: c.Template.Taints, StartupTaints: c.Template.StartupTaints,
		Requests: c.Requests, Seats: c.Seats, MadeFor: c.MadeFor, Replaces: c.Replaces, Hash: c.Template.Hash.Hash,
		HashVersion:         c.Template.Hash.Version,
		HasTerminationGrace: c.Template.HasTerminationGrace, TerminationGrace: c.Template.TerminationGrace,
		ExpireAfter: w.expire[c.Pool],
	}
}

func withoutLifeLabels(l cluster.Labels) cluster.Labels {
	return slices.DeleteFunc(slices.Clone(l), func(l cluster.Label) bool {
		return l.Key == cluster.RegisteredLabel || l.Key == cluster.InitializedLabel
	})
}

// launch buys the cheapest offering that the claim's requirements allow. What turns out to be sold out is remembered.
func (w *world) launch(c *cluster.Claim) {
	catalog := w.catalogFor(c)
	var known require.Set
	for _, e := range c.Requirements {
		if catalog.Index().Knows(e.Key) {
			known = known.With(e.Key, e.Values)
		}
	}
	var choice []*cluster.Offering
	for i := range catalog.Index().MatchAll(known).And(catalog.Available()).All {
		// A real cloud launches nothing that does not hold what the claim asks for.
		if o := &catalog.Offerings[i]; c.Requests.Fits(catalog.Types[o.Type].Allocatable) {
			choice = append(choice, o)
		}
	}
	slices.SortStableFunc(choice, func(a, b *cluster.Offering) int { return cmp.Compare(a.Price, b.Price) })
	for _, o := range choice {
		if w.empty[offeringID(catalog, o)] {
			w.soldOut[offeringID(catalog, o)] = true
			continue
		}
		t := catalog.Types[o.Type]
		c.ProviderID = "model://" + c.Name
		if w.unwritten[c.Name] = o.Labels; !w.late {
			c.Labels = o.Labels.Merge(c.Labels)
			delete(w.unwritten, c.Name)
		}
		c.Capacity, c.Allocatable, c.Price = t.Capacity, t.Allocatable, o.Price
		w.setCondition(c, cluster.Launched, cluster.True, "", "")
		w.run(c)
		if !w.silent {
			w.join(c)
		}
		return
	}
	w.setCondition(c, cluster.Launched, cluster.False, string(command.InsufficientCapacity), "no offering has capacity")
}

// join is the kubelet's part: the node appears.
func (w *world) join(c *cluster.Claim) {
	w.nodes[c.Name] = &cluster.Node{
		Name: c.Name, UID: "node-" + c.Name, ProviderID: c.ProviderID, Created: w.now, Ready: true, Ours: true,
		Capacity: c.Capacity, Allocatable: c.Allocatable, Labels: cluster.Labels{}.With(cluster.HostnameLabel, c.Name),
		Taints: []cluster.Taint{{Key: cluster.UnregisteredTaint, Effect: cluster.NoExecute}},
	}
	if w.cold {
		w.chill(w.nodes[c.Name])
	}
}

func (w *world) register(c *cluster.Claim, n *cluster.Node) {
	c.NodeName = n.Name
	n.Labels = n.Labels.Merge(c.Labels).With(cluster.RegisteredLabel, "true")
	n.Taints = slices.Concat(c.Taints, c.StartupTaints)
	if !n.Ready {
		w.chill(n)
	}
	n.Finalized = true
	w.setCondition(c, cluster.Registered, cluster.True, "", "")
}

// evict begins a pod's end; its owner replaces it at once.
func (w *world) evict(c command.Evict) {
	p := w.pods[c.UID]
	w.podEvent(p)
	p.Deleting = w.now
	if c.Delete {
		p.Grace = c.Grace
	}
	if p.Owner != "" && !p.Daemon {
		w.reborn++
		w.addPod(cluster.Pod{Name: fmt.Sprintf("%s-again%d", p.Name, w.reborn), Class: p.Class, Owner: p.Owner,
			Namespace: p.Namespace, Labels: p.Labels, Volumes: p.Volumes, ExclusiveVolumes: p.ExclusiveVolumes,
			DoNotDisrupt: p.DoNotDisrupt, Critical: p.Critical, Grace: p.Grace})
	}
	w.reap()
}

// reap removes the pods whose grace period is over.
func (w *world) reap() {
	maps.DeleteFunc(w.pods, func(_ string, p *cluster.Pod) bool {
		return !w.stuck && !p.Deleting.IsZero() && !w.now.Before(p.Deleting.Add(p.Grace))
	})
}

// terminate takes two tries: the first is accepted, the second learns that the instance is gone.
func (w *world) terminate(c command.Terminate) {
	claim := w.claims[c.Claim]
	if claim != nil && claim.ProviderID != "" && !claim.Is(cluster.InstanceTerminating) {
		w.setCondition(claim, cluster.Drained, cluster.True, "", "")
		w.setCondition(claim, cluster.InstanceTerminating, cluster.True, "", "")
		w.retry[c.Key()] = cluster.Retry{NotBefore: w.now.Add(time.Second)}
		return
	}
	w.endInstance(c)
	w.gone[c.Claim], w.gone[c.ProviderID] = true, true
	delete(w.gone, "")
}

func (w *world) release(c command.Release) {
	maps.DeleteFunc(w.pods, func(_ string, p *cluster.Pod) bool { return c.Node != "" && p.Node == c.Node })
	delete(w.nodes, c.Node)
	delete(w.claims, c.Claim)
	delete(w.gone, c.Claim)
}

// runDaemons is the DaemonSet controller's part, and kube-scheduler's: what finds no room waits.
func (w *world) runDaemons() {
	daemons := slices.SortedFunc(maps.Values(w.daemons), cluster.CompareDaemons)
	for _, n := range w.nodes {
		if !n.Finalized || !n.Deleting.IsZero() {
			continue
		}
		lands := daemonsFor(daemons, n)
		for _, d := range coming(lands, w.unlimited(n.Allocatable), w.meantFor(n)) {
			if name := d.Name + "-" + n.Name; w.pods[name] == nil {
				w.addPod(cluster.Pod{Name: name, Class: d.Class, Namespace: d.Namespace,
					Owner: cluster.OwnerKey(d.Namespace, d.UID), Node: n.Name, Daemon: true})
			}
		}
	}
}

// bind is kube-scheduler's part. It takes the important pods first and follows the plan, since which of two equal pods
// goes where makes no difference, but only where its own rules let a pod in; whom one pod keeps out, another may let
// in.
func (w *world) bind(assigned []schedule.Assignment) {
	assigned = slices.Clone(assigned)
	slices.SortStableFunc(assigned, func(a, b schedule.Assignment) int {
		return cmp.Compare(b.Pod.Class.Priority, a.Pod.Class.Priority)
	})
	for again := true; again; {
		again = false
		for _, a := range assigned {
			p, n := w.pods[a.Pod.UID], w.nodes[a.Host]
			if p == nil || n == nil || p.Node != "" || w.judge().objection(p, n) != "" {
				continue
			}
			w.bindPod(p, n.Name)
			again = true
		}
	}
}

func (w *world) judge() *judge {
	j := &judge{namespaces: w.namespaces, room: w.unlimited}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		j.nodes = append(j.nodes, w.nodes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		if w.pods[name].UsesRoom() {
			j.pods = append(j.pods, w.pods[name])
		}
	}
	return j
}

// asWritten is a status as it stands in the API.
func asWritten(c command.PoolStatus) cluster.PoolStatus {
	out := cluster.PoolStatus{Nodes: c.Nodes, Resources: c.Resources, ClassGeneration: c.ClassGeneration}
	for _, cond := range c.Conditions {
		out.Conditions = append(out.Conditions, render.Condition(cond))
	}
	return out
}
