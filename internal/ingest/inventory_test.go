package ingest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/cloud"
	"github.com/tenon-sh/tenon/internal/validate"
)

// lister is a cloud of which only the list is asked for.
type lister struct {
	cloudprovider.Instances
	list func() ([]*cloudprovider.Instance, error)
}

func (l lister) List(context.Context) ([]*cloudprovider.Instance, error) { return l.list() }

func TestCensusIsTakenOftenAtFirst(t *testing.T) {
	b, clock := newBook()
	fails := false
	machines := lister{list: func() ([]*cloudprovider.Instance, error) {
		if fails {
			return nil, errors.New("boom")
		}
		return nil, nil
	}}
	// next is how long it takes until the cloud is asked.
	next := func() (waited time.Duration) {
		for {
			if asked, _ := b.RefreshInventory(t.Context(), machines); asked {
				return waited
			}
			clock.tick(time.Second)
			waited += time.Second
		}
	}
	expect := func(what string, want ...time.Duration) {
		t.Helper()
		for i, w := range want {
			if got := next(); got != w {
				t.Errorf("%s: the %dth wait is %s, want %s", what, i+1, got, w)
			}
		}
	}
	expect("at the start", slices.Concat([]time.Duration{0}, slices.Repeat([]time.Duration{cloud.Early},
		cloud.EarlyTimes-1))...)
	expect("later", cloud.Late, cloud.Late)

	ours := machine("n")
	ours.Labels = map[string]string{"karpenter.kwok.sh/kwoknodeclass": "default"}
	ready := ours.DeepCopy()
	ready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	b.SetNode(ready)
	b.SetNode(ours)
	expect("a node of ours is not ready", cloud.Urgent, cloud.Late)
	b.SetClaim(claimObject("a", "1"))
	b.Record(command.Outcome{Command: command.LaunchInstance{Claim: "a"}, At: b.now(), Err: errors.New("lost")})
	expect("a launch leaves doubt", cloud.Urgent, cloud.Late)
	b.Record(command.Outcome{Command: command.Terminate{Claim: "a"}, At: b.now(), Err: errors.New("lost")})
	expect("a termination leaves doubt", cloud.Urgent, cloud.Late)
	b.DeleteNode("n")
	clock.tick(time.Minute)
	expect("a node of ours is gone, long after the last census", 0, cloud.Late)

	fails = true
	expect("it fails", cloud.Late, 5*time.Second, 10*time.Second, 20*time.Second, 40*time.Second, 80*time.Second,
		cloud.LongestWait, cloud.LongestWait)
	fails = false
	expect("it works again", cloud.LongestWait, cloud.Late)
}

func TestCensusTellsWhatTheCloudRuns(t *testing.T) {
	b, clock := newBook()
	if b.Snapshot().Inventory != nil {
		t.Fatal("there is a census before the first answer")
	}
	x := &cloudprovider.Instance{ProviderID: "kwok://x", ClaimName: "x", ClaimUID: "1", CreatedAt: at(11, 0)}
	y := &cloudprovider.Instance{ProviderID: "kwok://y", ClaimName: "y", ClaimUID: "2", Terminating: true}
	for _, c := range []struct {
		what string
		list []*cloudprovider.Instance
		want string
	}{
		{"the first", []*cloudprovider.Instance{y, x}, "rev"},
		{"the same in another order", []*cloudprovider.Instance{x, y}, "quiet rev"},
		{"one is gone", []*cloudprovider.Instance{x}, "rev"},
		{"one is ending", []*cloudprovider.Instance{{ProviderID: "kwok://x", ClaimName: "x", ClaimUID: "1",
			CreatedAt: at(11, 0), Terminating: true}}, "rev"},
	} {
		clock.tick(time.Minute)
		if got := moved(b, func() { b.SetInventory(clock.at, c.list) }); got != c.want {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.want)
		}
		if inventory := b.Snapshot().Inventory; !inventory.At.Equal(clock.at) ||
			len(inventory.Instances) != len(c.list) || !inventory.Has("kwok://x") {
			t.Errorf("%s: %+v", c.what, inventory)
		}
	}
	// What is known to be gone stays so while the cloud still lists it.
	b.Record(command.Outcome{Command: command.Terminate{ProviderID: "kwok://x"}, At: b.now(), InstanceGone: true})
	if !b.Snapshot().InstancesGone["kwok://x"] {
		t.Error("an orphan that is gone is forgotten while the census lists it")
	}
	b.SetInventory(clock.at, nil)
	if len(b.Snapshot().InstancesGone) != 0 {
		t.Error("an orphan that is gone is remembered for ever")
	}
}

func TestCensusTroubleIsToldOnce(t *testing.T) {
	book := New(time.Now, validate.Labels{}, nil)
	var fails atomic.Bool
	fails.Store(true)
	var asked atomic.Int64
	machines := lister{list: func() ([]*cloudprovider.Instance, error) {
		asked.Add(1)
		if fails.Load() {
			return nil, errors.New("boom")
		}
		return nil, nil
	}}
	told := make(chan error, 100)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- book.KeepInventory(ctx, machines, func(err error) { told <- err }) }()
	if err := <-told; err == nil {
		t.Fatal("the first word is that all is well")
	}
	again := func(want int64) {
		t.Helper()
		waitUntil(t, "the cloud is asked", func() bool {
			book.mu.Lock()
			book.inventory.Last = time.Now().Add(-time.Hour) // its time has come
			book.mu.Unlock()
			select {
			case book.inventoryWake <- struct{}{}:
			default:
			}
			return asked.Load() >= want
		})
	}
	again(3)
	if len(told) != 0 {
		t.Errorf("the same trouble is told again: %v", <-told)
	}
	fails.Store(false)
	again(asked.Load() + 1)
	if err := <-told; err != nil {
		t.Errorf("the cloud answers again, and what is told is %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOnlyNamedConditionsOfNodesAreKept(t *testing.T) {
	b, _ := newBook()
	b.WatchHealth("Ready", "DiskBroken")
	node := func(change func(*corev1.Node)) *corev1.Node {
		return with(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: "Ready", Status: "True", LastTransitionTime: metav1.Time{Time: at(11, 0)},
					LastHeartbeatTime: metav1.Time{Time: at(11, 5)}},
				{Type: "MemoryPressure", Status: "False"}, {Type: "DiskBroken", Status: "False",
					LastTransitionTime: metav1.Time{Time: at(11, 1)}}}}}, change)
	}
	b.SetNode(node(func(*corev1.Node) {}))
	n := b.Snapshot().Node("n")
	if len(n.Conditions) != 2 || n.Conditions[0].Type != "DiskBroken" || !n.Conditions[1].Since.Equal(at(11, 0)) ||
		!n.Ready {
		t.Errorf("conditions %+v", n.Conditions)
	}
	for _, c := range []struct {
		what   string
		change func(*corev1.Node)
		want   string
	}{
		{"a heartbeat", func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime = metav1.Time{Time: at(12, 0)}
		}, ""},
		{"pressure that nobody asked for", func(n *corev1.Node) { n.Status.Conditions[1].Status = "True" }, ""},
		{"the disk breaks", func(n *corev1.Node) { n.Status.Conditions[2].Status = "True" }, "rev"},
		{"it is not to be repaired", func(n *corev1.Node) {
			n.Annotations = map[string]string{"karpenter.sh/do-not-repair": "true"}
		}, "rev"},
		{"it is not ready", func(n *corev1.Node) { n.Status.Conditions[0].Status = "False" }, "supply help"},
	} {
		if got := moved(b, func() { b.SetNode(node(c.change)) }); got != c.want {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.want)
		}
	}
}
