package ingest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
	"github.com/tenon-sh/tenon/api/roundtrip"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/pools"
	"github.com/tenon-sh/tenon/internal/render"
)

// cared is a pool with annotations, as a snapshot shows it.
func cared(annotations map[string]string) *cluster.Pool {
	b, _ := newBook()
	p := pool("default")
	p.Annotations = annotations
	p.Spec.Template.Spec.ExpireAfter = v1.DurationOf(24 * time.Hour)
	b.SetPool(p)
	return b.Snapshot().Pool("default")
}

func TestCareIsRead(t *testing.T) {
	p := cared(map[string]string{
		pools.DryRunAnnotation: "true", pools.MinSavingAnnotation: "7.5%", pools.MinSavingPerPodAnnotation: "0.002",
		pools.EvictionsAnnotation:     "0",
		pools.DriftStrategyAnnotation: "canary", pools.DriftWatchAnnotation: "5m", pools.SoftExpiryAnnotation: "2h",
		"tenon.sh/consolidate-after-empty": "10s", "tenon.sh/consolidate-after-underutilized": "Never",
		"tenon.sh/launch-timeout": "1m", "example.com/other": "x",
	})
	c := p.Overrides
	if len(p.Problems) > 0 {
		t.Fatalf("problems %v", p.Problems)
	}
	if !c.DryRun || *c.MinSaving != 0.075 || *c.MinSavingPerPod != 0.002 || *c.EvictionsPerHour != 0 || !c.Canary ||
		c.CanaryWatch != 5*time.Minute || c.SoftExpiry != 2*time.Hour {
		t.Errorf("care %+v", c)
	}
	if got := fmt.Sprint(c.QuietPeriods); got != "map[Empty:{false 10s} Underutilized:{true 0s}]" {
		t.Errorf("waits %s", got)
	}
	if none := cared(nil).Overrides; none.DryRun || none.MinSaving != nil || none.EvictionsPerHour != nil ||
		none.Canary || none.QuietPeriods != nil {
		t.Errorf("care of a pool that says nothing: %+v", none)
	}
}

// What can't be read is told, and nothing that could wait is done to the pool's nodes meanwhile.
func TestCareThatCantBeRead(t *testing.T) {
	for _, c := range []struct{ key, text, want string }{
		{pools.DryRunAnnotation, "yes please", "use true or false"},
		{pools.MinSavingAnnotation, "5", "use a percentage from 0% to less than 100%, such as 5%"},
		{pools.MinSavingAnnotation, "100%", "use a percentage from 0% to less than 100%, such as 5%"},
		{pools.MinSavingAnnotation, "-1%", "use a percentage from 0% to less than 100%, such as 5%"},
		{pools.MinSavingAnnotation, "NaN%", "use a percentage from 0% to less than 100%, such as 5%"},
		{pools.MinSavingPerPodAnnotation, "a dime", "use dollars per hour of 0 or more, such as 0.001"},
		{pools.MinSavingPerPodAnnotation, "NaN", "use dollars per hour of 0 or more, such as 0.001"},
		{pools.MinSavingPerPodAnnotation, "+Inf", "use dollars per hour of 0 or more, such as 0.001"},
		{pools.EvictionsAnnotation, "-1", "use a whole number such as 2, or 0 for no bound"},
		{pools.EvictionsAnnotation, "1.5", "use a whole number such as 2, or 0 for no bound"},
		{pools.DriftStrategyAnnotation, "Canary", "use canary or parallel"},
		{pools.DriftWatchAnnotation, "0s", "use a duration of more than 0, such as 10m"},
		{pools.SoftExpiryAnnotation, "1d", "use a duration of more than 0, such as 10m"},
		{"tenon.sh/consolidate-after-drifted", "-5m", "use a duration of 0s or more, such as 30m, or Never"},
		{"tenon.sh/consolidate-after-empty", "never", "use a duration of 0s or more, such as 30m, or Never"},
	} {
		p := cared(map[string]string{c.key: c.text})
		if len(p.Problems) != 1 || p.Problems[0].Field != "metadata.annotations["+c.key+"]" ||
			p.Problems[0].Text != fmt.Sprintf("%q can't be read; %s, or remove the annotation", c.text, c.want) ||
			!p.Overrides.DryRun {
			t.Errorf("%s=%q: problems %v, care %+v, want %q", c.key, c.text, p.Problems, p.Overrides, c.want)
		}
	}
	p := cared(map[string]string{pools.SoftExpiryAnnotation: "24h"})
	if len(p.Problems) != 1 || p.Problems[0].Text != "24h0m0s is not less than spec.template.spec.expireAfter "+
		"(24h0m0s); use a shorter time, or remove the annotation" || p.Overrides.SoftExpiry != 0 {
		t.Errorf("problems %v", p.Problems)
	}
}

// A slip of the pen in the name of an annotation must not pass unnoticed: somebody relies on it.
func TestUnknownAnnotationOfOursIsTold(t *testing.T) {
	b, _ := newBook()
	p := pool("default")
	p.Annotations = map[string]string{"tenon.sh/dryrun": "true", "tenon.sh/launch-timeout": "1m"}
	b.SetPool(p)
	notes := b.Snapshot().Notes
	if len(notes) != 1 || notes[0].Reason != "UnknownAnnotation" ||
		render.Text(notes[0].Text) != "this version does not know "+
			"tenon.sh/dryrun, and does nothing about it; correct the name, or remove it" {
		t.Errorf("notes %v", notes)
	}
	if problems := b.Snapshot().Pool("default").Problems; len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
	p.Annotations = nil
	b.SetPool(p)
	if notes := b.Snapshot().Notes; len(notes) > 0 {
		t.Errorf("notes after it was removed: %v", notes)
	}
}

// A pool that was written as v1beta1 keeps what only that can say. Its settings of the kubelet do nothing, and that is
// told.
func TestKubeletOfAPoolIsTold(t *testing.T) {
	b, _ := newBook()
	p := pool("default")
	p.Annotations = map[string]string{roundtrip.V1Beta1OnlyAnnotationKey: "[]"}
	b.SetPool(p)
	if notes := b.Snapshot().Notes; len(notes) > 0 {
		t.Errorf("notes %v", notes)
	}
	p.Annotations[v1beta1.KubeletAnnotationKey] = `{"maxPods":20}`
	b.SetPool(p)
	if notes := b.Snapshot().Notes; len(notes) != 1 || notes[0].Reason != "KubeletHasNoEffect" || !notes[0].Warning {
		t.Errorf("notes %v", notes)
	}
}

// What is said about a pool is not said any more when it is gone, or another one has taken its name.
func TestNotesOfAPoolGoWithIt(t *testing.T) {
	b, _ := newBook()
	pool := func(uid string, annotations ...string) *v1.NodePool {
		return &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: types.UID(uid),
			Annotations: pairsOf(annotations...)}}
	}
	notes := func() int { return len(b.Snapshot().Notes) }
	b.SetPool(pool("u", "tenon.sh/nonsense", "x"))
	if notes() != 1 {
		t.Fatalf("notes %v", b.Snapshot().Notes)
	}
	b.SetPool(pool("v"))
	if notes() != 0 {
		t.Errorf("notes of a pool whose name another has: %v", b.Snapshot().Notes)
	}
	b.SetPool(pool("v", "tenon.sh/nonsense", "x"))
	b.DeletePool("p")
	if notes() != 0 {
		t.Errorf("notes of a pool that is gone: %v", b.Snapshot().Notes)
	}
}

// TestMistypedLabelIsADoubt: it is told and changes nothing else.
func TestMistypedLabelIsADoubt(t *testing.T) {
	b, _ := newBook()
	b.SetPool(with(pool("default"), func(p *v1.NodePool) {
		p.Spec.Template.Spec.Requirements =
			[]v1.NodeSelectorRequirementWithMinValues{{Key: "topology.kubernetes.io/zoen", Operator: "Exists"}}
	}))
	p := b.Snapshot().Pool("default")
	if len(p.Problems) != 0 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0].Text,
		"topology.kubernetes.io/zone,") {
		t.Errorf("problems %v, doubts %v", p.Problems, p.Warnings)
	}
}
