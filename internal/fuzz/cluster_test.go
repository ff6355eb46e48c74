package fuzz

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/lifecycle"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/resource"
)

func policy(s *source) plan.Policy {
	return plan.Policy{
		BatchIdle: time.Second, BatchMax: 10 * time.Second, StaticCapacity: s.one(2),
		Placement: choose(s, plan.PlaceByNomination, plan.PlaceByBinding, plan.PlaceByEvent),
		Lifecycle: lifecycle.Settings{LaunchTimeout: 5 * time.Minute, RegistrationTimeout: 15 * time.Minute},
		Repair: disrupt.RepairSettings{Enabled: s.one(2), MaxUnhealthy: 20,
			Policies: []disrupt.RepairPolicy{{Type: "Ready", Status: "Unknown", Toleration: time.Minute}}},
		Disrupt: disrupt.Settings{BalancedK: 2, SpotToSpot: s.one(2), SpotTypes: 1 + s.upTo(15),
			ReplacementTimeout: 5 * time.Minute, DriftWatch: time.Minute},
	}
}

// FuzzCluster has a cluster grow from bytes, takes it in, plans, searches and checks. Nothing panics, the same cluster
// gives the same plan, and a plan keeps its promises.
func FuzzCluster(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		judge(t, data)
	})
}

func judge(t *testing.T, data []byte) {
	t.Helper()
	s := &source{data: data}
	set := policy(s)
	w := grow(s.data)
	book := w.book(false)
	book.Planned(w.now.Add(-time.Minute))
	w.now = w.now.Add(2 * time.Minute) // whoever was waited for has had the time
	world := book.Snapshot()
	first := plan.Make(world, set, nil, nil)
	again := plan.Make(world, set, nil, nil)
	if a, b := dump(&first), dump(&again); a != b {
		t.Fatalf("the same snapshot gives\n%s\nand then\n%s", a, b)
	}
	checkPlan(t, world, &first)
	kept := plan.Check(first, world)
	if a, b := keys(&first), keys(&kept); a != b {
		t.Fatalf("a check against the same snapshot makes of\n%s\nthis:\n%s", a, b)
	}
	found := plan.Search(world, set)
	with := plan.Make(world, set, &first, &found)
	checkPlan(t, world, &with)

	// Some of it changes before the plan is carried out: nothing panics, and nothing is done about what is gone.
	for i, p := range w.pods {
		if i%3 == 0 {
			book.DeletePod(p)
		}
	}
	for i, n := range w.nodes {
		if i%2 == 0 {
			book.DeleteNode(n.Name)
		}
	}
	for i, c := range w.claims {
		if i%3 == 1 {
			book.DeleteClaim(c.Name)
		}
	}
	later := book.Snapshot()
	left := plan.Check(with, later)
	checkCommands(t, later, slices.DeleteFunc(slices.Clone(left.Commands), isEnd))
	next := plan.Make(later, set, &left, nil)
	checkPlan(t, later, &next)
}

// dump is all that a plan decides.
func dump(p *plan.Plan) string {
	var b strings.Builder
	b.WriteString(keys(p))
	for _, a := range p.Placement.Assigned {
		fmt.Fprintf(&b, "%s@%s\n", a.Pod.UID, a.Host)
	}
	for i := range p.Placement.Unplaced {
		fmt.Fprintf(&b, "%s: %s\n", p.Placement.Unplaced[i].Pod.UID, render.Unplaced(&p.Placement.Unplaced[i]))
	}
	fmt.Fprintln(&b, p.WakeAt, p.Notes)
	return b.String()
}

func keys(p *plan.Plan) string {
	var out []string
	for _, c := range p.Commands {
		key := c.Key()
		if create, ok := c.(command.CreateClaim); ok {
			for _, pod := range create.Pods {
				key += " " + pod.UID
			}
		}
		out = append(out, key)
	}
	return strings.Join(out, "\n")
}

// checkPlan holds a plan against what every plan promises.
func checkPlan(t *testing.T, s *cluster.Snapshot, p *plan.Plan) {
	t.Helper()
	if !p.WakeAt.IsZero() && !p.WakeAt.After(p.Now) {
		t.Errorf("at %s it asks to be woken at %s", p.Now, p.WakeAt)
	}
	checkCommands(t, s, p.Commands)
	checkPlaces(t, s, p)
	checkLimits(t, s, p)
}

// checkPlaces: a pod has one place at most, and nodes are not overfilled.
func checkPlaces(t *testing.T, s *cluster.Snapshot, p *plan.Plan) {
	t.Helper()
	places, load := make(map[string]int), make(map[string]resource.Vector)
	for _, a := range p.Placement.Assigned {
		places[a.Pod.UID]++
		load[a.Host] = load[a.Host].Add(a.Pod.Class.Requests)
	}
	for i := range p.Placement.Bins {
		for _, pod := range p.Placement.Bins[i].Pods {
			places[pod.UID]++
		}
	}
	for i := range p.Placement.Unplaced {
		places[p.Placement.Unplaced[i].Pod.UID]++
		if render.Unplaced(&p.Placement.Unplaced[i]) == "" {
			t.Errorf("%s is refused without a reason", p.Placement.Unplaced[i].Pod.ID())
		}
	}
	for uid, n := range places {
		if n > 1 {
			t.Errorf("pod %s has %d places", uid, n)
		}
	}
	for host, more := range load {
		n := s.Node(host)
		if c := s.ClaimOf(host); n == nil || c != nil && !c.Is(cluster.Initialized) {
			continue // its kubelet may not have said all yet
		}
		held := resource.Vector{}
		for _, pod := range s.PodsOn(host) {
			held = held.Add(pod.Class.Requests)
		}
		for dim := range more {
			if more[dim] > 0 && more[dim] > n.Allocatable[dim]-held[dim] && !strings.HasPrefix(s.Names.Name(dim),
				resource.AttachPrefix) {
				// pods that share a volume take it once
				t.Errorf("%s has %d of %s, its pods take %d and it gets %d more", host, n.Allocatable[dim],
					s.Names.Name(dim), held[dim], more[dim])
			}
		}
	}
}

// checkLimits: pools that grow stay within the number of nodes that they may have.
func checkLimits(t *testing.T, s *cluster.Snapshot, p *plan.Plan) {
	t.Helper()
	made := make(map[string]int64)
	for _, c := range p.Commands {
		if create, ok := c.(command.CreateClaim); ok {
			made[create.Pool]++
		}
	}
	for name, n := range made {
		pool := s.Pool(name)
		if !pool.Static && !pool.IsUsable() {
			t.Errorf("pool %s is not usable and gets %d nodes", name, n)
		}
		if have := int64(len(s.ClaimsOf(name))); pool.Limits.HasNodes && have+n > pool.Limits.Nodes {
			t.Errorf("pool %s has %d nodes of %d and gets %d", name, have, pool.Limits.Nodes, n)
		}
	}
}

// checkCommands: each is asked for once, is about what is there, and is not asked of what it must not be asked of.
func checkCommands(t *testing.T, s *cluster.Snapshot, commands []command.Command) {
	t.Helper()
	asked := make(map[string]bool)
	for _, c := range commands {
		if asked[c.Key()] {
			t.Errorf("%s is asked for twice", c.Key())
		}
		asked[c.Key()] = true
		if wrong := precondition(s, c); wrong != "" {
			t.Errorf("%s: %s", c.Key(), wrong)
		}
	}
}

// precondition says what is wrong about a command; empty if nothing.
func precondition(s *cluster.Snapshot, c command.Command) string {
	claim := func(name, uid string) (*cluster.Claim, string) {
		x := s.Claim(name)
		switch {
		case x == nil:
			return nil, "there is no claim " + name
		case uid != "" && x.UID != uid:
			return x, "the claim has another UID"
		}
		return x, ""
	}
	switch c := c.(type) {
	case command.CreateClaim:
		if pool := s.Pool(c.Pool); pool == nil || s.Claim(c.Name) != nil {
			return "its pool is gone, or its name taken"
		}
	case command.LaunchInstance:
		x, wrong := claim(c.Claim, c.UID)
		if wrong == "" && (!x.Deleting.IsZero() || x.Is(cluster.Launched)) {
			return "the claim is launched, or on its way out"
		}
		return wrong
	case command.DeleteClaim:
		x, wrong := claim(c.Claim, c.UID)
		if wrong == "" && !x.Deleting.IsZero() {
			return "the claim is on its way out"
		}
		return wrong
	case command.Terminate:
		if c.Claim == "" {
			if slices.ContainsFunc(s.Claims, func(x *cluster.Claim) bool { return x.ProviderID == c.ProviderID }) {
				return "a claim says that it is its machine"
			}
			return ""
		}
		x, wrong := claim(c.Claim, c.UID)
		if wrong == "" && x.Deleting.IsZero() {
			return "the claim is to stay"
		}
		return wrong
	case command.Release:
		if c.Claim == "" {
			return ""
		}
		_, wrong := claim(c.Claim, c.UID)
		return wrong
	case command.Evict:
		return evictable(s, c)
	case command.Bind:
		if n := s.Node(c.Node); n == nil {
			return "there is no such node"
		}
	case command.Fence:
		if s.Node(c.Node) == nil {
			return "there is no such node"
		}
	}
	return ""
}

// isEnd reports whether a command finishes what is being deleted, which nothing takes back: the rest may be gone by
// then.
func isEnd(c command.Command) bool {
	switch c.(type) {
	case command.Terminate, command.Release, command.Evict:
		return true
	}
	return false
}

func evictable(s *cluster.Snapshot, c command.Evict) string {
	at := slices.IndexFunc(s.Pods, func(p *cluster.Pod) bool { return p.UID == c.UID })
	if at < 0 || s.Pods[at].Node != c.Node {
		return "there is no such pod on the node"
	}
	n, claim := s.Node(c.Node), s.ClaimOf(c.Node)
	if (n == nil || n.Deleting.IsZero()) && (claim == nil || claim.Deleting.IsZero()) {
		return "neither the node nor its claim is on its way out"
	}
	if c.Grace < 0 {
		return "its grace is negative"
	}
	return ""
}

// seeds are where the fuzzer begins: a few clusters of every size.
func seeds() [][]byte {
	var out [][]byte
	for n := range 24 {
		data := make([]byte, 40+n*24)
		x := uint32(n)*2654435761 + 12345
		for i := range data {
			x = x*1664525 + 1013904223
			data[i] = byte(x >> 24)
		}
		out = append(out, data)
	}
	return out
}
