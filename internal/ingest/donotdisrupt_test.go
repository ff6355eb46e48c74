package ingest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/resource"
)

// guardedPod is on a node since noon and asks not to be disrupted.
func guardedPod(uid, text string) *corev1.Pod {
	p := placedPod(uid, "n")
	p.Annotations = map[string]string{v1.DoNotDisruptAnnotationKey: text}
	p.Status.StartTime = &metav1.Time{Time: at(12, 0)}
	return p
}

func TestDoNotDisruptIsReadAndEnds(t *testing.T) {
	for _, c := range []struct {
		text  string
		now   bool
		until time.Time
		later bool // still at a quarter past twelve
		note  string
	}{
		{"true", true, time.Time{}, true, ""},
		{"10m", true, at(12, 10), false, ""},
		{"15m", true, at(12, 15), false, ""},
		{"16m", true, at(12, 16), true, ""},
		{"0s", false, at(12, 0), false, ""},
		{"false", false, time.Time{}, false, ""},
		{"yes", false, time.Time{}, false, `"yes" is neither true nor a duration`},
		{"-5m", false, time.Time{}, false, `"-5m" is neither`},
		{"", false, time.Time{}, false, `"" is neither`},
	} {
		b, clock := newBook()
		b.SetPod(guardedPod("a", c.text))
		s := b.Snapshot()
		if p := s.Pods[0]; p.DoNotDisrupt != c.now || !p.DoNotDisruptUntil.Equal(c.until) ||
			!p.Started.Equal(at(12, 0)) {
			t.Errorf("%q: protected %v until %s, started %s", c.text, p.DoNotDisrupt, p.DoNotDisruptUntil, p.Started)
		}
		told := ""
		for _, n := range s.Notes {
			told += n.Reason + " " + render.Text(n.Text)
			if !n.Warning || n.UID != "a" || n.Kind != "Pod" || n.Name != "a" {
				t.Errorf("%q: note %+v", c.text, n)
			}
		}
		if (told != "") != (c.note != "") || !strings.Contains(told, c.note) || told != "" && !strings.HasPrefix(told,
			"InvalidDoNotDisruptAnnotation ") {
			t.Errorf("%q: told %q, want %q", c.text, told, c.note)
		}
		clock.tick(15 * time.Minute)
		if p := b.Snapshot().Pods[0]; p.DoNotDisrupt != c.later {
			t.Errorf("%q: protected %v after 15 minutes", c.text, p.DoNotDisrupt)
		}
		b.DeletePod(guardedPod("a", c.text))
		if notes := b.Snapshot().Notes; len(notes) > 0 {
			t.Errorf("%q: a pod that is gone is still talked about: %v", c.text, notes)
		}
	}
}

// TestOlderNamesOfDoNotDisrupt: what the generation of Provisioners called it counts, and only if it says true.
func TestOlderNamesOfDoNotDisrupt(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "false": false, "30m": false, "": false} {
		b, _ := newBook()
		p := placedPod("a", "n")
		p.Annotations = map[string]string{v1.DoNotEvictAnnotationKey: text}
		b.SetPod(p)
		if s := b.Snapshot(); s.Pods[0].DoNotDisrupt != want || len(s.Notes) > 0 {
			t.Errorf("do-not-evict %q: protected %v, notes %v", text, s.Pods[0].DoNotDisrupt, s.Notes)
		}
		if got := decode.KeepsNode(map[string]string{v1.DoNotConsolidateAnnotationKey: text}); got != want {
			t.Errorf("do-not-consolidate %q: kept %v", text, got)
		}
	}
}

func TestEndOfProtectionMovesSupply(t *testing.T) {
	b, clock := newBook()
	b.SetPod(guardedPod("a", "10m"))
	b.SetPod(guardedPod("b", "30m"))
	b.SetPod(guardedPod("b", "20m"))
	for _, c := range []struct {
		tick time.Duration
		want string
	}{{9 * time.Minute, ""}, {time.Minute, "supply help"}, {9 * time.Minute, ""}, {time.Minute, "supply help"},
		{20 * time.Minute, ""}} {
		if got := moved(b, func() { clock.tick(c.tick) }); got != c.want {
			t.Errorf("at %s: %q moved, want %q", clock.at.Format("15:04"), got, c.want)
		}
	}
	if got := moved(b, func() { b.SetPod(guardedPod("a", "10m")) }); got != "" {
		t.Errorf("the same pod again: %q moved", got)
	}
	waits := guardedPod("c", "10m")
	waits.Status.StartTime = nil
	b.SetPod(waits)
	if p, _ := b.pods.Get("c"); !p.DoNotDisrupt || !p.DoNotDisruptUntil.IsZero() {
		t.Errorf("a pod that has not started: %v until %s", p.DoNotDisrupt, p.DoNotDisruptUntil)
	}
}

func TestReadinessWakesNobody(t *testing.T) {
	b, _ := newBook()
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	ready := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady,
			Status: corev1.ConditionTrue})
	}
	b.SetPod(placedPod("a", "n"))
	if got := moved(b, func() { b.SetPod(with(placedPod("a", "n"), ready)) }); got != "quiet rev" {
		t.Errorf("a pod gets ready: %q moved", got)
	}
	if !onlyPod(b).Ready {
		t.Error("the pod is not ready")
	}
	started := with(placedPod("a", "n"), func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: at(12, 0)} })
	if got := moved(b, func() { b.SetPod(started) }); got != "quiet rev" {
		t.Errorf("a pod starts: %q moved", got)
	}
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: "NoSchedule"}}}})
	if got := moved(b, func() { b.SetPod(with(placedPod("a", "n"), ready)) }); got != "rev" {
		t.Errorf("a pod gets ready on a node that is being drained: %q moved", got)
	}
}

func TestLimitsAndSchedulerOfPods(t *testing.T) {
	b, _ := newBook()
	limited := func(uid, scheduler string) *corev1.Pod {
		return with(placedPod(uid, "n"), func(p *corev1.Pod) {
			p.Spec.SchedulerName = scheduler
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: quantity("2")}},
				{Resources: corev1.ResourceRequirements{Limits: quantity("1")}}}
		})
	}
	b.SetPod(limited("a", corev1.DefaultSchedulerName))
	b.SetPod(limited("b", "own"))
	b.SetPod(placedPod("c", "n"))
	pods := b.Snapshot().Pods
	if pods[0].Limits == nil || pods[0].Limits[resource.CPU] != 3000 || pods[0].Limits != pods[1].Limits ||
		pods[2].Limits != nil {
		t.Errorf("limits %v, %v, %v", pods[0].Limits, pods[1].Limits, pods[2].Limits)
	}
	if pods[0].OtherScheduler || !pods[1].OtherScheduler || pods[2].OtherScheduler {
		t.Error("only pod b has a scheduler of its own")
	}
	b.DeletePod(limited("a", ""))
	b.DeletePod(limited("b", ""))
	b.dropUnused()
	if b.specs.Entries().Limits != 0 {
		t.Error("limits that no pod has are kept")
	}
}
