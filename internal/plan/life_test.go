package plan_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/require"
)

// life is what the stories of a node's life and end add to a world: the cloud's machines, budgets of pods and volumes.
type life struct {
	instances map[string]*cluster.Instance // by provider id: what the cloud really runs
	inventory *cluster.Inventory           // what it has last said
	guards    map[string]*cluster.PDB
	attached  map[string][]string
	expire    map[string]cluster.NillableDuration // by pool
	trial     map[string]bool                     // offerings that were refused and may be back
	uncounted map[string]bool                     // budgets whose pods nobody has counted yet
	cold      bool                                // nodes join before their kubelets are up
	late      bool                                // what an instance is shows on its claim after its status
	unwritten map[string]cluster.Labels
	stir      cluster.SchedulerActivity
	said      time.Time // when somebody said that orphans may be ended
	lost      time.Time // when a claim vanished that was not being deleted
	ended     map[string]time.Time
}

func newLife() life {
	return life{instances: map[string]*cluster.Instance{}, guards: map[string]*cluster.PDB{},
		attached: map[string][]string{},
		expire:   map[string]cluster.NillableDuration{}, trial: map[string]bool{}, uncounted: map[string]bool{},
		unwritten: map[string]cluster.Labels{},
		ended:     map[string]time.Time{}}
}

// addLife puts it into a snapshot.
func (w *world) addLife(s *cluster.Snapshot) {
	s.Inventory, s.SchedulerActivity, s.EndOrphans, s.Cluster = w.inventory, w.stir, w.said, "cluster-uid"
	s.ClaimLostAt, s.OrphansEnded = w.lost, maps.Clone(w.ended)
	s.WorkloadTries = w.unusedNow()
	s.Attached = make(map[string][]string)
	for node, handles := range w.attached {
		s.Attached[node] = slices.Clone(handles)
	}
	s.PDBs = copies(w.guards, nil)
	for _, g := range s.PDBs {
		if w.uncounted[g.Name] {
			g.DesiredHealthy = 0
			continue
		}
		g.Healthy = 0
		for _, p := range w.pods {
			if g.Selects(p) && p.Ready && p.Deleting.IsZero() {
				g.Healthy++
			}
		}
		g.Allowed = max(0, g.Healthy-g.DesiredHealthy)
	}
	slices.SortFunc(s.PDBs, func(a, b *cluster.PDB) int { return cmp.Compare(a.ID(), b.ID()) })
}

// run is the cloud's part of a launch.
func (w *world) run(c *cluster.Claim) {
	w.instances[c.ProviderID] = &cluster.Instance{ProviderID: c.ProviderID, Claim: c.Name, ClaimUID: c.UID,
		Created: w.now}
}

// endInstance is the cloud's part of a termination, once it is over.
func (w *world) endInstance(c command.Terminate) {
	id := c.ProviderID
	if c.Claim == "" {
		w.ended[id] = w.now
	}
	if claim := w.claims[c.Claim]; id == "" && claim != nil {
		for _, i := range w.instances {
			if i.ClaimUID == claim.UID {
				id = i.ProviderID
			}
		}
	}
	delete(w.instances, id)
	for _, n := range w.nodes {
		if n.ProviderID == id {
			n.Ready = false
		}
	}
}

// countPods has the cloud say what it runs.
func (w *world) countPods() {
	w.inventory = &cluster.Inventory{At: w.now}
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		w.inventory.Instances = append(w.inventory.Instances, *w.instances[id])
	}
}

func (w *world) deleteClaim(c command.DeleteClaim) {
	claim := w.claims[c.Claim]
	if !claim.Finalized {
		delete(w.claims, c.Claim)
		return
	}
	claim.Deleting = w.now
	if !c.Deadline.IsZero() {
		claim.Deadline = c.Deadline
	}
}

func (w *world) deleteNode(name string) {
	if n := w.nodes[name]; n.Finalized {
		n.Deleting = w.now
		return
	}
	w.dropNode(name)
}

// dropNode takes a node away; its pods go with it, and their owners replace them.
func (w *world) dropNode(name string) {
	delete(w.nodes, name)
	delete(w.attached, name)
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[uid]
		if p.Node != name {
			continue
		}
		delete(w.pods, uid)
		if p.Owner != "" && !p.Daemon && p.Deleting.IsZero() {
			w.reborn++
			w.addPod(cluster.Pod{Name: fmt.Sprintf("%s-again%d", p.Name, w.reborn), Class: p.Class, Owner: p.Owner,
				Namespace: p.Namespace, Labels: p.Labels})
		}
	}
}

func (w *world) setClaim(c command.SetClaim) {
	claim := w.claims[c.Claim]
	if claim == nil { // it has gone in the meantime
		return
	}
	if !c.LastPodEvent.IsZero() {
		claim.SavedPodEvent = c.LastPodEvent
	}
	if !c.Deadline.IsZero() {
		claim.Deadline = c.Deadline
	}
	for _, cond := range c.Conditions {
		if cond.Status == cluster.Absent {
			claim.Conditions = slices.DeleteFunc(slices.Clone(claim.Conditions), func(c cluster.Condition) bool {
				return c.Type == cond.Type
			})
			continue
		}
		w.setCondition(claim, cond.Type, cond.Status, cond.Reason, render.Text(cond.Text))
	}
}

// judgeState is what initializing a node says about its size, unless somebody has said otherwise.
func (w *world) judgeState(c *cluster.Claim) {
	if c.Condition(cluster.ConsistentState).Status != cluster.False {
		w.setCondition(c, cluster.ConsistentState, cluster.True, "", "")
	}
}

func (w *world) tellLine(c command.SetClaim) string {
	var parts []string
	if !c.LastPodEvent.IsZero() {
		parts = append(parts, "note the last pod event of "+w.called(c.Claim))
	}
	if !c.Deadline.IsZero() {
		parts = append(parts, fmt.Sprintf("%s must be gone in %s", w.called(c.Claim), c.Deadline.Sub(w.now)))
	}
	for _, cond := range c.Conditions {
		if cond.Type == cluster.Consolidatable { // it accompanies everything
			continue
		}
		if cond.Status == cluster.Absent {
			parts = append(parts, fmt.Sprintf("%s is no longer %s", w.called(c.Claim), cond.Type))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s is %s %s (%s: %s)", w.called(c.Claim), cond.Type, cond.Status,
			cond.Reason, w.renamed(render.Text(cond.Text))))
	}
	return strings.Join(parts, "\n")
}

// noteLines writes what people are told.
func (w *world) noteLines(p *plan.Plan, asked bool) string {
	out := new(strings.Builder)
	for _, n := range p.Notes {
		if asked {
			fmt.Fprintf(out, "tell %s %s: %s: %s\n", n.Kind, w.called(n.Name), n.Reason, w.renamed(render.Text(n.Text)))
		}
	}
	return out.String()
}

// poolLifeWord: launch=, registration=, initialization= (timeouts of its own), expire=, held=FOR, trial, let-go.
func (n *storyRunner) poolLifeWord(p *cluster.Pool, key, value string) bool {
	switch key {
	case "launch":
		p.Timeouts.Launch = n.duration(value)
	case "registration":
		p.Timeouts.Registration = n.duration(value)
	case "initialization":
		p.Timeouts.Initialization = n.duration(value)
	case "expire":
		n.w.expire[p.Name] = cluster.NillableDuration{For: n.duration(value)}
	case "held":
		p.InBackoff, p.BackoffUntil = true, n.w.now.Add(n.duration(value))
	case "trial":
		p.InBackoff, p.Probing = false, true
	case "let-go":
		p.Probing = false
		p.InBackoff = false
	case "replicas":
		p.Static, p.Replicas = true, int64(n.integer(value))
	default:
		return n.poolMoveWord(p, key, value)
	}
	return true
}

// podLifeWord: ready, starting (it has not begun), until=FOR (do-not-disrupt that ends).
func (n *storyRunner) podLifeWord(p *cluster.Pod, key, value string) bool {
	switch key {
	case "ready":
		p.Ready, p.Started = true, n.w.now
	case "starting":
		p.Phase = "Pending"
	case "until":
		p.DoNotDisrupt, p.DoNotDisruptUntil = true, n.w.now.Add(n.duration(value))
	default:
		return false
	}
	return true
}

// lifeHappens is what else others do: see the cases.
func (n *storyRunner) lifeHappens(verb string, words []string) bool {
	w, arg := n.w, words[len(words)-1]
	real := w.realName(arg)
	switch verb {
	case "cloud census":
		w.countPods()
	case "confirm orphans": // somebody annotates kube-system
		w.said = w.now
	case "nameless instance": // nameless instance NODE: nothing on it tells this cluster from a namesake
		w.instances[w.nodes[real].ProviderID].Unproven = true
	case "cloud cold", "cloud warm":
		w.cold = verb == "cloud cold"
	case "labels late":
		w.late = true
	case "labels come":
		w.late = false
		for name, labels := range w.unwritten {
			w.claims[name].Labels = labels.Merge(w.claims[name].Labels)
		}
		clear(w.unwritten)
	case "scheduler tries": // a pod that is told a node, and can't place it
		w.pods[arg].Nominated = ""
		w.stirUp()
	case "cloud lacks": // it has told us so
		w.empty[arg], w.soldOut[arg] = true, true
	case "cloud doubts":
		w.trial[arg] = true
	case "end instance": // somebody ends a machine behind our back
		delete(w.instances, w.claims[real].ProviderID)
		if node := w.nodes[real]; node != nil {
			node.Ready = false
		}
	case "lose node": // somebody takes the finalizer off
		w.dropNode(real)
	case "double node":
		twin := *w.nodes[real]
		twin.Name, twin.UID = arg+"-twin", "node-twin"
		w.nodes[twin.Name] = &twin
	case "bare node":
		w.nodes[real].Taints = nil
	case "attach volume": // attach volume HANDLE NODE
		w.attached[real] = append(w.attached[real], words[2])
	case "detach volume":
		w.attached[real] = slices.DeleteFunc(w.attached[real], func(h string) bool { return h == words[2] })
	case "shrink node": // shrink node NODE memory=2Gi
		node := w.nodes[w.realName(words[2])]
		key, value, _ := strings.Cut(words[3], "=")
		n.resourceWord(&node.Capacity, key, value)
	default:
		switch words[0] {
		case "ails", "heals", "marks", "warms":
			return n.healthHappens(words)
		case "guard":
			n.addGuard(words[1:])
		case "deadline": // deadline NODE FOR: an annotation that somebody wrote
			w.claims[w.realName(words[1])].Deadline = w.now.Add(n.duration(words[2]))
		case "unused":
			n.unusedNodes(words[1], words[2:])
		case "claim":
			n.addClaim(words[1], words[2:])
		default:
			return n.moveHappens(words)
		}
	}
	return true
}

// addGuard: guard NAME app=web wanted=2 expected=3 [frees-unhealthy] is a budget that wants so many pods ready.
func (n *storyRunner) addGuard(words []string) {
	g := &cluster.PDB{Namespace: "default", Name: words[0], Selector: cluster.Selector{Namespaces: []string{"default"}}}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "app":
			g.Selector.Labels = g.Selector.Labels.With("app", require.Only(value))
		case "wanted":
			g.DesiredHealthy = n.integer(value)
		case "expected":
			g.Expected = n.integer(value)
		case "uncounted":
			n.w.uncounted[g.Name] = true
		case "frees-unhealthy":
			g.AllowsUnhealthy = true
		default:
			n.fail("guard: unknown word %q", word)
		}
	}
	n.w.guards[g.Name] = g
}

// addClaim: claim NAME type=small [invalid] [grace=5m] [expire=1h] is a NodeClaim that a person wrote.
func (n *storyRunner) addClaim(name string, words []string) {
	c := &cluster.Claim{Name: name, UID: "uid-" + name, Created: n.w.now}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "type":
			c.Requirements = c.Requirements.With(cluster.InstanceTypeLabel, require.Only(value))
		case "invalid":
			c.Problems = []cluster.Problem{{Field: "spec.requirements[0].operator", Text: "the operator is not known"}}
		case "grace":
			c.HasTerminationGrace, c.TerminationGrace = true, n.duration(value)
		case "expire":
			c.ExpireAfter = cluster.NillableDuration{For: n.duration(value)}
		default:
			n.fail("claim: unknown word %q", word)
		}
	}
	n.w.claims[name], n.w.alias[name] = c, name
}

// onTrial marks the offerings that were refused and may be back.
func (w *world) onTrial(offerings []cluster.Offering) {
	for i := range offerings {
		o := &offerings[i]
		o.Probing = w.trial[w.types[o.Type].Name+"/"+o.Zone+"/"+o.CapacityType]
	}
}
