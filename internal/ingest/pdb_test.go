package ingest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

func budget(change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	return with(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 2},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: labelled("app", "web")},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: 3, CurrentHealthy: 5,
			DesiredHealthy: 2, ExpectedPods: 5},
	}, change)
}

func TestGuards(t *testing.T) {
	always := policyv1.AlwaysAllow
	for _, c := range []struct {
		what     string
		change   func(*policyv1.PodDisruptionBudget)
		selected []string
		allowed  int
		frees    bool
	}{
		{"a selector", func(*policyv1.PodDisruptionBudget) {}, []string{"web"}, 3, false},
		{"an empty selector", func(p *policyv1.PodDisruptionBudget) {
			p.Spec.Selector = &metav1.LabelSelector{}
		}, []string{"web", "plain"}, 3, false},
		{"no selector", func(p *policyv1.PodDisruptionBudget) { p.Spec.Selector = nil }, nil, 3, false},
		{"another namespace", func(p *policyv1.PodDisruptionBudget) { p.Namespace = "away" }, nil, 3, false},
		{"a count that is out of date", func(p *policyv1.PodDisruptionBudget) {
			p.Generation = 3
		}, []string{"web"}, 0, false},
		{"unhealthy pods are free", func(p *policyv1.PodDisruptionBudget) {
			p.Spec.UnhealthyPodEvictionPolicy = &always
		}, []string{"web"}, 3, true},
	} {
		b, _ := newBook()
		b.SetPod(with(placedPod("web", "n"), func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }))
		b.SetPod(placedPod("plain", "n"))
		b.SetPDB(budget(c.change))
		s := b.Snapshot()
		g := s.PDBs[0]
		var selected []string
		for _, p := range s.Pods {
			if len(s.PDBsOf(p)) > 0 {
				selected = append(selected, p.Name)
			}
		}
		slices.Sort(selected)
		slices.Sort(c.selected)
		if !slices.Equal(selected, c.selected) || g.Allowed != c.allowed || g.AllowsUnhealthy != c.frees ||
			g.Healthy != 5 || g.DesiredHealthy != 2 || g.Expected != 5 {
			t.Errorf("%s: selects %v, %+v", c.what, selected, *g)
		}
	}
}

func TestGuardsMoveRevisions(t *testing.T) {
	b, _ := newBook()
	set := func(change func(*policyv1.PodDisruptionBudget)) func() { return func() { b.SetPDB(budget(change)) } }
	for _, c := range []struct {
		what   string
		change func()
		want   string
	}{
		{"a budget comes", set(func(*policyv1.PodDisruptionBudget) {}), "stakes"},
		{"it is the same", set(func(p *policyv1.PodDisruptionBudget) { p.ResourceVersion = "9" }), ""},
		{"a pod more is healthy", set(func(p *policyv1.PodDisruptionBudget) {
			p.Status.CurrentHealthy = 6
		}), "quiet rev"},
		{"it allows less", set(func(p *policyv1.PodDisruptionBudget) { p.Status.DisruptionsAllowed = 1 }), "stakes"},
		{"it wants all that there should be", set(func(p *policyv1.PodDisruptionBudget) {
			p.Status.DesiredHealthy, p.Status.DisruptionsAllowed = 5, 2
		}), "demand supply help"},
		{"and there is one more", set(func(p *policyv1.PodDisruptionBudget) {
			p.Status.DesiredHealthy, p.Status.DisruptionsAllowed = 5, 1
		}), "demand supply help"},
		{"and there are no more", set(func(p *policyv1.PodDisruptionBudget) {
			p.Status.DesiredHealthy, p.Status.DisruptionsAllowed = 5, 0
		}), "demand supply help"},
		{"it holds other pods", set(func(p *policyv1.PodDisruptionBudget) {
			p.Status.DesiredHealthy, p.Status.DisruptionsAllowed, p.Spec.Selector = 5, 0, labelled("app", "db")
		}), "demand supply help"},
		{"it is gone", func() { b.DeletePDB("default", "web") }, "demand supply help"},
		{"it is gone again", func() { b.DeletePDB("default", "web") }, ""},
	} {
		if got := moved(b, c.change); got != c.want {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.want)
		}
	}
	if s := b.Snapshot(); len(s.PDBs) != 0 {
		t.Errorf("guards %v", s.PDBs)
	}
}

func attachment1(name, node, pv string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "csi.example.com", NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}}
}

func TestAttachments(t *testing.T) {
	b := bookOf(t, volumeOf("pv-a", "fast"))
	driver, handle := decode.DiskOf(volumeOf("pv-a", "fast"))
	disk := driver + "/" + handle
	if got := moved(b, func() { b.SetAttachment(attachment1("1", "n", "pv-a")) }); got != "quiet rev" {
		t.Errorf("a volume is attached: %q moved", got)
	}
	b.SetAttachment(attachment1("2", "n", "pv-b"))
	b.SetAttachment(attachment1("3", "m", "pv-b"))
	if got := b.Snapshot().Attached; !slices.Equal(got["n"], []string{disk, "pv-b"}) && !slices.Equal(got["n"],
		[]string{"pv-b", disk}) || !slices.Equal(got["m"], []string{"pv-b"}) {
		t.Errorf("attached %v", got)
	}
	tell(t, b, volumeOf("pv-b", "fast"))
	if got := b.Snapshot().Attached["m"]; slices.Contains(got, "pv-b") {
		t.Errorf("a volume that has become known still goes by the name of its PersistentVolume: %v", got)
	}
	if got := moved(b, func() { b.DeleteAttachment("1") }); got != "rev" {
		t.Errorf("a volume is detached: %q moved", got)
	}
	b.DeleteAttachment("2")
	b.DeleteAttachment("3")
	if got := b.Snapshot().Attached; len(got) != 0 {
		t.Errorf("attached %v after all are gone", got)
	}
}

func TestVolumesOfPodsThatStayAreNotAwaited(t *testing.T) {
	b := bookOf(t, storageClass("fast", "csi.example.com", storagev1.VolumeBindingWaitForFirstConsumer),
		volumeOf("pv-a", "fast"), boundTo(claimOf("data", "fast"), "pv-a"))
	b.SetAttachment(attachment1("1", "n", "pv-a"))
	pod := with(mounting("data"), func(p *corev1.Pod) { p.UID, p.Spec.NodeName = "a", "n" })
	b.SetPod(pod)
	if got := b.Snapshot().Attached["n"]; len(got) != 1 {
		t.Fatalf("a pod that is evicted leaves no volume to wait for: %v", got)
	}
	stays := with(pod, func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	b.SetPod(stays)
	if got := b.Snapshot().Attached["n"]; len(got) != 0 {
		t.Errorf("the volume of a pod that no drain moves is awaited: %v", got)
	}
	b.DeletePod(stays)
	if got := b.Snapshot().Attached["n"]; len(got) != 1 {
		t.Errorf("the volume of a pod that is gone is not awaited: %v", got)
	}
}
