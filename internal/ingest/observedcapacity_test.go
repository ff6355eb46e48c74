package ingest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

// readyNode is an initialized node of a type with so much memory, made at the given time.
func readyNode(name, kind, memory string, created time.Time) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: created},
			Labels: map[string]string{
				"karpenter.kwok.sh/kwoknodeclass": "default", cluster.InstanceTypeLabel: kind,
				cluster.InitializedLabel: "true"}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"cpu": apiresource.MustParse("4"), "memory": apiresource.MustParse(memory),
			"pods": apiresource.MustParse("110"), "example.com/device": apiresource.MustParse("0")}},
	}
}

func memoryOf(b *Book, kind string) int64 {
	t, _ := b.Snapshot().Pool("default").Catalog.Type(kind)
	return t.Allocatable[resource.Memory] >> 20
}

func TestCatalogLearnsWhatNodesReallyHave(t *testing.T) {
	b, clock := market() // m and n have 8 GiB
	for _, c := range []struct {
		what   string
		change func()
		want   int64
		moved  string
	}{
		{"as promised", func() { b.SetNode(readyNode("a", "m", "8Gi", clock.at)) }, 8192, "supply help"},
		{"less", func() { b.SetNode(readyNode("b", "m", "7Gi", clock.at)) }, 7168, "supply help"},
		{"more", func() { b.SetNode(readyNode("c", "m", "9Gi", clock.at)) }, 7168, "supply help"},
		{"one that is out of order", func() { b.SetNode(readyNode("x", "n", "3Gi", clock.at)) }, 7168, "supply help"},
		{"one that shrinks", func() { b.SetNode(readyNode("a", "m", "6Gi", clock.at)) }, 7168, "supply help"},
		{"one that was starting", func() { b.SetNode(readyNode("g", "m", "5Gi", clock.at)) }, 5120, "supply help"},
		{"and has more now", func() { b.SetNode(readyNode("g", "m", "8Gi", clock.at)) }, 7168, "supply help"},
		{"the small one goes", func() { b.DeleteNode("b") }, 7168, "supply help"},
		{"one that is not ready", func() {
			b.SetNode(with(readyNode("d", "m", "1Gi", clock.at), func(n *corev1.Node) {
				delete(n.Labels, cluster.InitializedLabel)
			}))
		}, 7168, "supply help"},
		{"one of another class", func() {
			b.SetNode(with(readyNode("e", "m", "1Gi", clock.at), func(n *corev1.Node) {
				n.Labels["karpenter.kwok.sh/kwoknodeclass"] = "other"
			}))
		}, 7168, "supply help"},
		{"time passes", func() { clock.tick(time.Hour) }, 7168, ""},
		{"the class changes", func() {
			b.SetNodeClass(defaultClass(), cluster.NodeClassState{Ready: true, Generation: 2})
		}, 8192, "supply help"},
		{"an old node says it again", func() { b.SetNode(readyNode("b", "m", "7Gi", at(12, 0))) }, 8192, "supply help"},
		{"a new node has less", func() { b.SetNode(readyNode("f", "m", "6Gi", clock.at)) }, 6144, "supply help"},
	} {
		if got := moved(b, c.change); got != c.moved {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.moved)
		}
		if got := memoryOf(b, "m"); got != c.want {
			t.Errorf("%s: type m has %d MiB, want %d", c.what, got, c.want)
		}
		if got := memoryOf(b, "n"); got != 8192 {
			t.Errorf("%s: type n has %d MiB", c.what, got)
		}
	}
}

func TestVolumeLimitsAreLearned(t *testing.T) {
	b, clock := market()
	b.SetNode(readyNode("a", "m", "8Gi", clock.at))
	b.SetCSINode(csiNode("a", 3))
	b.SetVolume(volumeOf("pv", "fast"))
	b.SetVolumeClaim(boundTo(claimOf("data", "fast"), "pv"))
	b.SetPod(mounting("data"))
	c := b.Snapshot().Pool("default").Catalog
	dim, counted := b.Names().Lookup(resource.AttachPrefix + decode.EbsDriver)
	if !counted {
		t.Fatal("nobody counts volumes")
	}
	m, _ := c.Type("m")
	n, _ := c.Type("n")
	if m.Allocatable[dim] != 3 || n.Allocatable[dim] != podspec.Unlimited {
		t.Errorf("m can attach %d volumes, n %d", m.Allocatable[dim], n.Allocatable[dim])
	}
}

// TestTooSmallNodeIsNotBoughtAgain is the endless bill: a pod that fits what is promised and not what comes.
func TestTooSmallNodeIsNotBoughtAgain(t *testing.T) {
	b, clock := market()
	b.SetPod(with(judgedPod("a"), func(p *corev1.Pod) {
		requests := corev1.ResourceList{"memory": apiresource.MustParse("7900Mi")}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}
	}))
	clock.tick(time.Minute)
	policy := plan.Policy{BatchIdle: time.Second, BatchMax: 10 * time.Second}
	types := func() (bought []string, reasons int) {
		p := plan.Make(b.Snapshot(), policy, nil, nil)
		for _, c := range p.Commands {
			if create, ok := c.(command.CreateClaim); ok {
				values, _ := create.Requirements.Get(cluster.InstanceTypeLabel)
				list, _ := values.Listed()
				bought = append(bought, list...)
			}
		}
		return bought, len(p.Placement.Unplaced)
	}
	if got, _ := types(); len(got) != 2 {
		t.Fatalf("at first any of %v may be bought, want m and n", got)
	}
	b.SetNode(readyNode("x", "m", "7Gi", clock.at))
	if got, _ := types(); len(got) != 1 || got[0] != "n" {
		t.Errorf("after m turned out to be too small %v is bought, want n", got)
	}
	b.SetNode(readyNode("y", "n", "7Gi", clock.at))
	if got, reasons := types(); len(got) != 0 || reasons != 1 {
		t.Errorf("when no type is large enough %v is bought, and %d pods are told why", got, reasons)
	}
}
