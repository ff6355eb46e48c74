package ingest

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/render"
)

func TestEvictionCost(t *testing.T) {
	high, low := int32(2000000000), int32(-2000000000)
	annotated := func(pairs ...string) *corev1.Pod {
		return with(placedPod("p", "n"), func(p *corev1.Pod) { p.Annotations = pairsOf(pairs...) })
	}
	for _, c := range []struct {
		what string
		pod  *corev1.Pod
		want float64
		told string
	}{
		{"says nothing", placedPod("p", "n"), 1, ""},
		{"deletion cost", annotated(corev1.PodDeletionCost, "134217728"), 2, ""},
		{"disruption cost", annotated(v1.DisruptionCostAnnotationKey, "-134217728"), 0, ""},
		{"both: the contract's own counts", annotated(v1.DisruptionCostAnnotationKey, "134217728",
			corev1.PodDeletionCost, "-134217728"), 2, ""},
		{"its own can't be read: the other counts", annotated(v1.DisruptionCostAnnotationKey, "much",
			corev1.PodDeletionCost, "134217728"), 2, `"much" is not a whole number`},
		{"too large to read", annotated(v1.DisruptionCostAnnotationKey, "2147483648"), 1, "2147483648"},
		{"the most", annotated(v1.DisruptionCostAnnotationKey, "2147483647"), 10, ""},
		{"priority", with(placedPod("p", "n"), func(p *corev1.Pod) { p.Spec.Priority = &high }), 10, ""},
		{"the least", with(placedPod("p", "n"), func(p *corev1.Pod) { p.Spec.Priority = &low }), -10, ""},
	} {
		b, _ := newBook()
		b.SetPod(c.pod)
		s := b.Snapshot()
		if got := s.Pods[0].EvictionCost; got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
		if told := len(s.Notes) == 1 && strings.Contains(render.Text(s.Notes[0].Text),
			c.told); told != (c.told != "") ||
			len(s.Notes) > 1 {
			t.Errorf("%s: notes %v", c.what, s.Notes)
		}
		b.DeletePod(c.pod)
		if notes := b.Snapshot().Notes; len(notes) > 0 {
			t.Errorf("%s: notes of a pod that is gone: %v", c.what, notes)
		}
	}
}

// leavingBook has a node "n" that is taken away for the reason, with pods of the owner "rs".
func leavingBook(reason command.Reason, pods ...string) (*Book, *clock) {
	b, c := newBook()
	b.SetClaim(with(launchedClaim("n", "", metav1.ConditionTrue), func(o *v1.NodeClaim) {
		o.Status.Conditions = append(o.Status.Conditions, metav1.Condition{Type: v1.ConditionTypeDisruptionReason,
			Status: metav1.ConditionTrue, Reason: string(reason)})
	}))
	b.SetNode(machine("n"))
	for _, uid := range pods {
		b.SetPod(ownedPod(uid, "rs", c.now()))
	}
	return b, c
}

func ownedPod(uid, owner string, created time.Time) *corev1.Pod {
	return with(placedPod(uid, "n"), func(p *corev1.Pod) {
		controls := true
		p.CreationTimestamp = metav1.NewTime(created)
		p.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Kind: "ReplicaSet", Controller: &controls}}
	})
}

func TestEvictionsToSaveMoneyAreCounted(t *testing.T) {
	b, c := leavingBook(command.Underutilized, "p1", "p2", "p3")
	evict := func(uid string, err error) {
		b.Record(command.Outcome{Command: command.Evict{UID: uid, Owner: "default/rs", Node: "n"},
			At: c.now(), Err: err})
	}
	check := func(what string, count int, rested time.Time) {
		t.Helper()
		if s := b.Snapshot(); s.EvictedToSave["default/rs"] != count || !s.EvictionsDropAt["default/rs"].Equal(rested) {
			t.Errorf("%s: %d until %v, want %d until %v", what, s.EvictedToSave["default/rs"],
				s.EvictionsDropAt["default/rs"], count, rested)
		}
	}
	check("before", 0, time.Time{})
	evict("p1", nil)
	evict("p1", nil) // asked again
	evict("p2", errors.New("its budget does not allow it"))
	check("one", 1, at(13, 0))
	c.tick(30 * time.Minute)
	evict("p3", nil)
	check("two", 2, at(13, 0))
	c.tick(30 * time.Minute)
	check("the first is an hour ago", 1, at(13, 30))
	c.tick(30 * time.Minute)
	check("both are", 0, time.Time{})

	b, c = leavingBook(command.Drifted, "p1")
	evict("p1", nil)
	check("for another reason", 0, time.Time{})
}

// What was evicted before a restart is not known, so what may have been is supposed.
func TestEvictionsBeforeARestartAreSupposed(t *testing.T) {
	for _, c := range []struct {
		what           string
		owner, created time.Time
		want           int
	}{
		{"one of the first pods of a young owner", at(11, 50), at(11, 52), 0},
		{"a pod that came later", at(9, 0), at(11, 30), 1},
		{"an old pod", at(9, 0), at(10, 30), 0},
		{"a pod of an owner that nobody knows", time.Time{}, at(11, 30), 1},
		{"a pod that comes after the start", at(9, 0), at(12, 1), 0},
	} {
		b, clock := newBook()
		if !c.owner.IsZero() {
			b.SetOwner(cluster.Owner{UID: "rs", Namespace: "default", Kind: "ReplicaSet", Known: true, Desired: 3,
				Created: c.owner})
		}
		b.SetPod(ownedPod("p", "rs", c.created))
		if got := b.Snapshot().EvictedToSave["default/rs"]; got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
		clock.tick(time.Hour)
		if got := b.Snapshot().EvictedToSave["default/rs"]; got != 0 {
			t.Errorf("%s, an hour later: %d", c.what, got)
		}
	}
}

// A pod without a grace period may be gone before its eviction is answered.
func TestEvictionOfAPodThatIsGoneIsCounted(t *testing.T) {
	b, c := leavingBook(command.Underutilized, "p1")
	b.DeletePod(ownedPod("p1", "rs", c.now()))
	b.Record(command.Outcome{Command: command.Evict{UID: "p1", Owner: "default/rs", Node: "n"}, At: c.now()})
	if got := b.Snapshot().EvictedToSave["default/rs"]; got != 1 {
		t.Errorf("%d evictions, want 1", got)
	}
}

// A replica that has stood by for hours knows no more about the last one than one that has just been started.
func TestEvictionsBeforeAFailoverAreSupposed(t *testing.T) {
	b, c := newBook()
	c.tick(5 * time.Hour)
	pod := ownedPod("p", "rs", c.now().Add(-10*time.Minute))
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	server := &apiServer{release: make(chan struct{}), items: map[string][]any{"pods": {pod}}}
	close(server.release)
	plane := startCache(t, server)
	if err := b.Watch(t.Context(), plane, []schema.GroupVersionKind{classGVK()}, plane.pods); err != nil {
		t.Fatal(err)
	}
	if got := b.Snapshot().EvictedToSave["default/rs"]; got != 1 {
		t.Errorf("%d evictions are supposed, want 1", got)
	}
}
