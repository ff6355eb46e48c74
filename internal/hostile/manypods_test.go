package hostile_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/hostile"
)

// wordy is n pods at the bounds of node affinity, each in words of its own.
func wordy(n int) []*corev1.Pod {
	out := make([]*corev1.Pod, n)
	for i := range out {
		p := hostile.NodeAffinity(256, 8, 8)
		p.Name, p.UID = fmt.Sprint("wordy-", i), types.UID(fmt.Sprint("wordy-", i))
		terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for j := range terms {
			terms[j].MatchExpressions[0].Values[0] = fmt.Sprint("w", i, "-", j)
		}
		out[i] = p
	}
	return out
}

// TestManyPodsAtTheBounds: a plan does not read anew what hundreds of pods say about nodes at length, 300 KiB each. It
// takes a fraction of the memory that their words do.
func TestManyPodsAtTheBounds(t *testing.T) {
	const pods = 100
	plain, _ := planned(newBook(t, ordinary))
	book := newBook(t, ordinary)
	for _, p := range wordy(pods) {
		book.SetPod(p)
	}
	book.Snapshot()
	bytes, p := planned(book)
	if n := len(placedPods(&p.Placement)); n != ordinary+pods {
		t.Errorf("%d of %d pods have a place", n, ordinary+pods)
	}
	if most := plain + pods*(150<<10); bytes > most {
		t.Errorf("the plan takes %d KiB, expected at most %d KiB", bytes>>10, most>>10)
	}
}
