package hostile_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/hostile"
	"github.com/tenon-sh/tenon/internal/plan"
)

// toldOf counts the notes with a reason.
func toldOf(p *plan.Plan, reason string) int {
	n := 0
	for i := range p.Notes {
		if p.Notes[i].Reason == reason {
			n++
		}
	}
	return n
}

// Who may make DaemonSets in a namespace can't keep all others from their nodes, neither by one that fits on no machine
// nor by very many that use up every machine together. People are told, and not a thousand times.
func TestDaemonSetsKeepNobodyFromNodes(t *testing.T) {
	cases := map[string]struct {
		objects                   []client.Object
		onSets, omitted, squeezed int
	}{
		"ten thousand CPUs":            {[]client.Object{hostile.HugeDaemonSet("10000")}, 1, 1, 0},
		"more than most machines have": {[]client.Object{hostile.HugeDaemonSet("449")}, 0, 0, 0},
		"a thousand small ones":        {hostile.DaemonSets(1000), 0, 0, 1},
	}
	for name, c := range cases {
		book := newBook(t, ordinary)
		for _, o := range c.objects {
			feed(book, o)
		}
		stock(t, book)
		p := plan.Make(book.Snapshot(), policy(), nil, nil)
		if n := len(placedPods(&p.Placement)); n != ordinary {
			t.Errorf("%s: %d of %d pods have a place", name, n, ordinary)
		}
		for reason, want := range map[string]int{
			plan.FitsNowhere: c.onSets, plan.DaemonSetsOmitted: c.omitted, plan.DaemonSetsSqueezed: c.squeezed,
		} {
			if got := toldOf(&p, reason); got != want {
				t.Errorf("%s: %s is told %d times, expected %d", name, reason, got, want)
			}
		}
	}
}

// DaemonSets that would preempt the pods on each new node are counted: no node is bought that can't help.
func TestDaemonSetsThatPreemptAreCounted(t *testing.T) {
	book := newBook(t, ordinary)
	for _, o := range hostile.DaemonSets(1000) {
		higher := int32(1000)
		o.(*appsv1.DaemonSet).Spec.Template.Spec.Priority = &higher
		feed(book, o)
	}
	stock(t, book)
	p := plan.Make(book.Snapshot(), policy(), nil, nil)
	if n := len(placedPods(&p.Placement)); n != 0 || len(p.Placement.Unplaced) != ordinary {
		t.Errorf("%d pods have a place and %d are told why not; expected 0 and %d", n, len(p.Placement.Unplaced),
			ordinary)
	}
}
