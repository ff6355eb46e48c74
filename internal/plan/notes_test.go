package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// What the planner has failed on is left out and told: where, in which words, and until when.
func TestWhatIsToldOfFailures(t *testing.T) {
	const until = "2026-11-15T12:05:00Z"
	onParts := func(text string) []string { return []string{"NodePool default: " + text} }
	part := func(p cluster.Part) func(*cluster.Quarantine, cluster.Failure) {
		return func(q *cluster.Quarantine, f cluster.Failure) { q.Parts = map[cluster.Part]cluster.Failure{p: f} }
	}
	for _, c := range []struct {
		name   string
		change func(*cluster.Quarantine, cluster.Failure)
		want   []string
		failed []string // pods that are refused
	}{
		{"nothing", func(*cluster.Quarantine, cluster.Failure) {}, nil, nil},
		{"interruptions", part(cluster.Interrupting), onParts("Replacing interrupted nodes failed, which is a " +
			"mistake in Tenon: boom. It is left out until " + until + "; everything else goes on"), nil},
		{"placement", part(cluster.Placing), onParts("Finding places for pods failed, which is a mistake in Tenon: " +
			"boom. It is left out until " + until + "; everything else goes on"), []string{"w"}},
		{"guidance", part(cluster.Nominating), onParts("Telling pods their new nodes failed, which is a mistake in " +
			"Tenon: boom. It is left out until " + until + "; everything else goes on"), nil},
		{"status", part(cluster.WritingStatus), onParts("Working out the status of NodeClaims and NodePools failed, " +
			"which is a mistake in Tenon: boom. It is left out until " + until + "; everything else goes on"), nil},
		{"disruption", part(cluster.Disrupting), onParts("Deciding which nodes to remove failed, which is a mistake " +
			"in Tenon: boom. It is left out until " + until + "; everything else goes on"), nil},
		{"the search", part(cluster.Searching), onParts("The search for cheaper nodes failed, which is a mistake in " +
			"Tenon: boom. It is left out until " + until + "; everything else goes on"), nil},
		{"a claim", func(q *cluster.Quarantine, f cluster.Failure) {
			q.Claims = map[string]cluster.Failure{"c": f}
		}, []string{
			"NodePool default: The planner failed on 0 classes of pods and 1 NodeClaims, which is a mistake in " +
				"Tenon. They are left out for a while. Nodes that carry them or were made for them are not " +
				"disrupted; everything else goes on",
			"NodeClaim c: The planner failed on this NodeClaim, which is a mistake in Tenon: boom. It is left as it " +
				"is until " + until,
		}, nil},
		{"a class of pods", func(q *cluster.Quarantine, f cluster.Failure) {
			q.Classes = map[string]cluster.Failure{"web": f}
		}, []string{
			"NodePool default: The planner failed on 1 classes of pods and 0 NodeClaims, which is a mistake in " +
				"Tenon. They are left out for a while. Nodes that carry them or were made for them are not " +
				"disrupted; everything else goes on",
		}, []string{"w"}},
		{"a class of pods in the search", func(q *cluster.Quarantine, f cluster.Failure) {
			q.SearchClasses = map[string]cluster.Failure{"web": f}
		}, onParts("The search for cheaper nodes failed on 1 classes of pods and 0 NodeClaims, which is a mistake in " +
			"Tenon. Their nodes are not replaced by cheaper ones; all other nodes can be, and pods get nodes as usual"),
			nil},
		{"two claims in the search", func(q *cluster.Quarantine, f cluster.Failure) {
			q.SearchClaims = map[string]cluster.Failure{"c": f, "d": f}
		}, onParts("The search for cheaper nodes failed on 0 classes of pods and 2 NodeClaims, which is a mistake in " +
			"Tenon. Their nodes are not replaced by cheaper ones; all other nodes can be, and pods get nodes as usual"),
			nil},
	} {
		x := newScene()
		c.change(&x.s.Quarantine, cluster.Failure{Message: "boom", Until: x.s.Now.Add(5 * time.Minute)})
		p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
		var got, failed []string
		for _, n := range p.Notes {
			if n.Reason != plan.PlannerFailed {
				continue
			}
			if got = append(got, n.Kind+" "+n.Name+": "+render.Text(n.Text)); !n.Warning {
				t.Errorf("%s: %q is no warning", c.name, render.Text(n.Text))
			}
		}
		for _, u := range p.Placement.Unplaced {
			if u.Failed != nil && u.Failed.Message == "boom" {
				failed = append(failed, u.Pod.Name)
			}
		}
		if !slices.Equal(got, c.want) || !slices.Equal(failed, c.failed) {
			t.Errorf("%s: %q, and %v are refused; want %q and %v", c.name, got, failed, c.want, c.failed)
		}
		if c.want != nil && (p.WakeAt.IsZero() || p.WakeAt.After(x.s.Now.Add(5*time.Minute))) {
			t.Errorf("%s: looks again at %v", c.name, p.WakeAt)
		}
	}
}

// Pods that are still being counted have not been planned for, whatever is left out meanwhile.
func TestFailuresDoNotEndTheCounting(t *testing.T) {
	x := newScene()
	x.w.UnschedulableSince, x.s.PlannedAt = x.s.Now, x.s.Now.Add(-time.Hour)
	x.s.Owners["web"] = cluster.Owner{UID: "web", Known: true, Desired: 9}
	x.s.Quarantine.Parts = map[cluster.Part]cluster.Failure{cluster.WritingStatus: {Message: "boom",
		Until: x.s.Now.Add(time.Minute)}}
	if p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil); p.Provisioned {
		t.Error("the pods count as planned for")
	}
}

// Every step that can fail has a number of its own in the metrics, by its name.
func TestStepsThatCanFail(t *testing.T) {
	steps := plan.Steps()
	slices.Sort(steps)
	if all := slices.Compact(slices.Clone(steps)); len(all) != 9 || len(all) != len(steps) || slices.Contains(all, "") {
		t.Errorf("%q, want nine different names", steps)
	}
}

// A pod is bound to the node that was made for it while nobody else is at that: kube-scheduler takes the node when it
// is ready, and the pod must need nothing but a place. Else it is told where to go, or not yet.
func TestWhoIsBound(t *testing.T) {
	const bind, nothing = "bind/w", ""
	taint := cluster.Taint{Key: "dedicated", Value: "db", Effect: cluster.NoSchedule}
	for _, c := range []struct {
		name   string
		change func(x *scene)
		want   string
	}{
		{"the kubelet is not up yet", func(*scene) {}, bind},
		{"the kubelet is up, and there is no other node to go to", func(x *scene) { x.node.Ready = true }, nothing},
		{"the node is not registered", func(x *scene) { x.claim.Conditions = x.claim.Conditions[:1] }, nothing},
		{"the node is open", func(x *scene) {
			x.claim.Conditions[2].Status, x.node.Ready = cluster.True, true
		}, nothing},
		{"the node goes", func(x *scene) { x.node.Deleting = x.s.Now }, nothing},
		{"the claim goes", func(x *scene) { x.claim.Deleting = x.s.Now }, nothing},
		{"the pod has another scheduler", func(x *scene) { x.w.OtherScheduler = true }, nothing},
		{"the node has the taint that goes when the kubelet is up", func(x *scene) {
			x.node.Taints = []cluster.Taint{{Key: "node.kubernetes.io/not-ready", Effect: cluster.NoSchedule}}
		}, bind},
		{"the pod tolerates the taint of the node", func(x *scene) {
			x.node.Taints, x.claim.Taints = []cluster.Taint{taint}, []cluster.Taint{taint}
			x.w.Class = &cluster.PodClass{Key: "db", Terms: x.w.Class.Terms, Requests: x.w.Class.Requests,
				Tolerations: []cluster.Toleration{{Key: "dedicated", Exists: true}}}
		}, bind},
		{"the node has a taint that no startup taint explains", func(x *scene) {
			x.node.Taints = []cluster.Taint{taint}
			x.w.Class = &cluster.PodClass{Key: "db", Terms: x.w.Class.Terms, Requests: x.w.Class.Requests}
			x.w.ExclusiveVolumes = []string{"disk"}
		}, "nominate/w"},
		{"a volume has to be made where the pod goes", func(x *scene) {
			x.w.UnboundClaims = []string{"claim"}
		}, "nominate/w"},
		{"the node is kept for a move", func(x *scene) { x.node.KeptFor = "underutilized-x" }, nothing},
		{"the node is cordoned", func(x *scene) { x.node.Cordoned = true }, nothing},
		{"it is being done", func(x *scene) { x.s.InFlight["bind/w"] = true }, nothing},
		{"fifty others are being told", func(x *scene) {
			for _, uid := range many(50) {
				x.s.InFlight["nominate/"+uid] = true
			}
		}, nothing},
		{"fifty others are being bound", func(x *scene) {
			for _, uid := range many(50) {
				x.s.InFlight["bind/"+uid] = true
			}
		}, nothing},
		{"forty-nine others are being bound", func(x *scene) {
			for _, uid := range many(49) {
				x.s.InFlight["bind/"+uid] = true
			}
		}, bind},
		{"fifty nodes are being launched", func(x *scene) {
			for _, uid := range many(50) {
				x.s.InFlight["launch/"+uid] = true
			}
		}, bind},
	} {
		x := newScene()
		x.s.Nodes, x.s.Pods = x.s.Nodes[:1], x.s.Pods[1:]
		x.node.Ready, x.claim.Conditions[2].Status = false, cluster.Unknown
		x.claim.Created = x.s.Now.Add(-time.Minute)
		x.s.Owners["web"] = cluster.Owner{UID: "web", Known: true, Desired: 1}
		c.change(x)
		policy := defaultPolicy()
		policy.Placement = plan.PlaceByBinding
		p := plan.Make(x.s.Seal(), policy, nil, nil)
		got := nothing
		for _, cmd := range p.Commands {
			switch cmd := cmd.(type) {
			case command.Bind:
				got = cmd.Key()
				if want := (command.Bind{Pod: "shop/w", UID: "w", Namespace: "shop", Name: "w",
					Node: "n"}); cmd != want {
					t.Errorf("%s: %+v, want %+v", c.name, cmd, want)
				}
			case command.Nominate:
				got = cmd.Key()
				if want := (command.Nominate{Pod: "shop/w", UID: "w", Namespace: "shop", Name: "w",
					Node: "n"}); cmd != want {
					t.Errorf("%s: %+v, want %+v", c.name, cmd, want)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func many(n int) []string {
	var out []string
	for i := range n {
		out = append(out, string(rune('A'+i)))
	}
	return out
}

// The large pods of a node that goes to save money leave before the small ones, for ten seconds. Size is what a pod
// takes of all there is, in the resource of which it takes most; who takes less than twice as much is no larger.
func TestLargePodsLeaveFirst(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *scene)
		want   []string
	}{
		{"large and small", func(*scene) {}, []string{"large"}},
		{"almost as large", func(x *scene) {
			x.s.Pods[0].Class, x.s.Pods[1].Class = sized(1900, 0), sized(1100, 0)
		}, []string{"large", "small"}},
		{"large in another resource", func(x *scene) { x.s.Pods[1].Class = sized(100, 4<<30) }, []string{"small"}},
		{"the node goes for another reason", func(x *scene) { x.claim.Move = "drifted-x" }, []string{"large", "small"}},
		{"for almost ten seconds", func(x *scene) {
			x.claim.Deleting = x.s.Now.Add(-9 * time.Second)
		}, []string{"large"}},
		{"for ten seconds", func(x *scene) {
			x.claim.Deleting = x.s.Now.Add(-10 * time.Second)
		}, []string{"large", "small"}},
		{"the large one could not leave", func(x *scene) {
			x.s.Retry["evict/large"] = cluster.Retry{NotBefore: x.s.Now}
		}, []string{"large", "small"}},
		{"a larger one is between two nodes", func(x *scene) {
			away := *x.w
			away.UID, away.Name, away.Class, away.Unschedulable, away.SchedulerSeen = "away", "away", sized(3000, 0),
				false, false
			x.s.Pods = append([]*cluster.Pod{&away}, x.s.Pods...)
		}, nil},
		{"one that is between two nodes asks for what no node has", func(x *scene) {
			away := *x.w
			away.UID, away.Name, away.Class, away.Unschedulable, away.SchedulerSeen = "away", "away", sized(10, 0),
				false, false
			away.Class.Requests[resource.Pods+1] = 1
			x.s.Pods = append([]*cluster.Pod{&away}, x.s.Pods...)
		}, []string{"large"}},
		{"the time of the node is up", func(x *scene) { x.claim.Deadline = x.s.Now }, []string{"large", "small"}},
		{"who asks for nothing comes last", func(x *scene) { x.s.Pods[1].Class = sized(0, 0) }, []string{"large"}},
		{"all ask for nothing", func(x *scene) {
			x.s.Pods[0].Class, x.s.Pods[1].Class = sized(0, 0), sized(0, 0)
		}, []string{"large", "small"}},
	} {
		x := newScene()
		x.s.Pods = nil
		for _, name := range []string{"large", "small"} {
			p := *x.p
			p.UID, p.Name, p.Class = name, name, sized(map[string]int64{"large": 1000, "small": 100}[name], 0)
			x.s.Pods = append(x.s.Pods, &p)
		}
		x.fenced(command.Underutilized)
		x.claim.Deleting, x.claim.Finalized = x.s.Now.Add(-6*time.Second), true
		c.change(x)
		p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
		var got []string
		for _, cmd := range p.Commands {
			if e, ok := cmd.(command.Evict); ok {
				got = append(got, e.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v leave, want %v", c.name, got, c.want)
		}
		if at := x.claim.Deleting.Add(10 * time.Second); len(c.want) < 2 && (p.WakeAt.IsZero() || p.WakeAt.After(at)) {
			t.Errorf("%s: looks again at %v, want %v at the latest", c.name, p.WakeAt, at)
		}
	}
}

// sized is a class of pods that ask for so much.
func sized(cpu, memory int64) *cluster.PodClass {
	return &cluster.PodClass{Key: "sized", Terms: []require.Set{nil}, Requests: resource.Vector{resource.CPU: cpu,
		resource.Memory: memory}}
}
