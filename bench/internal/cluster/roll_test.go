package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenon-sh/tenon/bench/internal/report"
)

func TestRollFindsTheLongestPause(t *testing.T) {
	begin := time.Unix(100, 0)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	r := newRoll(begin, 2, []string{"a", "b", "c", "d"})
	r.saw("a", going, at(3)) // what comes before is no pause
	r.saw("a", going, at(3.5))
	r.saw("b", going, at(4)) // the budget had room for a second
	r.saw("new", going, at(5))
	r.lost("a", at(10)) // from here there is room
	r.saw("c", going, at(10.5))
	r.saw("b", ending, at(20)) // it no longer counts
	r.saw("d", going, at(22))  // two seconds: the longest
	r.lost("c", at(30))        // nobody is left to be chosen
	if n := r.left(); n != 2 {
		t.Errorf("%d are left", n)
	}
	r.lost("d", at(90))
	if got, want := r.result(), (report.Roll{First: 3, Pause: 2, Most: 2}); got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
}

func TestRollForgivesANodeThatIsLetBack(t *testing.T) {
	begin := time.Unix(100, 0)
	r := newRoll(begin, 1, []string{"a", "b"})
	r.saw("a", going, begin)
	r.saw("a", staying, begin.Add(time.Second))
	r.saw("b", going, begin.Add(5*time.Second))
	if got, want := r.result(), (report.Roll{Pause: 4, Most: 1}); got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
}

func TestPhases(t *testing.T) {
	claim := func(condition string) *unstructured.Unstructured {
		return &unstructured.Unstructured{
			Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": condition,
				"status": "True"}}}},
		}
	}
	deleted := claim("Ready")
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	for _, c := range []struct {
		claim *unstructured.Unstructured
		want  phase
	}{{claim("Ready"), staying}, {deleted, going}, {claim("DisruptionReason"), going},
		{claim("InstanceTerminating"), ending}} {
		if got := phaseOf(c.claim); got != c.want {
			t.Errorf("%v: got %d, want %d", c.claim.Object, got, c.want)
		}
	}
}
