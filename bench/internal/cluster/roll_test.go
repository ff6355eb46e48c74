package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/bench/internal/report"
)

func TestRollFindsTheLongestPause(t *testing.T) {
	begin := time.Unix(100, 0)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	r := newRoll(begin, 2, []string{"a", "b", "c", "d"})
	r.saw("a", true, at(3)) // what comes before is no pause
	r.saw("a", true, at(3.5))
	r.saw("b", true, at(4)) // the budget had room for a second
	r.saw("new", true, at(5))
	r.lost("a", at(10)) // from here there is room
	r.saw("c", true, at(10.5))
	r.lost("b", at(20))
	r.saw("d", true, at(22)) // two seconds: the longest
	r.lost("c", at(30))      // nobody is left to be chosen
	if n := r.left(); n != 1 {
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
	r.saw("a", true, begin)
	r.saw("a", false, begin.Add(time.Second))
	r.saw("b", true, begin.Add(5*time.Second))
	if got, want := r.result(), (report.Roll{Pause: 4, Most: 1}); got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
}

func TestLeaves(t *testing.T) {
	deleted := &corev1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}}
	marked := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: disrupted}}}}
	if !leaves(deleted) || !leaves(marked) || leaves(&corev1.Node{}) {
		t.Error("a node that is deleted or marked is on its way out, and no other")
	}
}
