package ingest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/command"
)

func taintedNode(name string, keys ...string) *corev1.Node {
	n := machine(name)
	for _, key := range keys {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	return n
}

// TestSignsOfKubeScheduler tells what kube-scheduler does, or has reason to do, from what others do.
func TestSignsOfKubeScheduler(t *testing.T) {
	said := with(judgedPod("a"), func(p *corev1.Pod) { p.Status.Conditions[0].Message = "0/3 nodes are available" })
	for _, c := range []struct {
		what  string
		do    func(*Book)
		stirs bool
	}{
		{"a pod that is new to us", func(b *Book) { b.SetPod(judgedPod("b")) }, false},
		{"something is said of a pod that waits", func(b *Book) { b.SetPod(said) }, true},
		{"we name a node for it", func(b *Book) { b.SetPod(nominatedPod("a", "n")) }, false},
		{"it loses the node that was named for it", func(b *Book) { b.SetPod(judgedPod("told")) }, true},
		{"it is bound", func(b *Book) {
			b.SetPod(with(judgedPod("a"), func(p *corev1.Pod) { p.Spec.NodeName = "n" }))
		}, true},
		{"a pod runs on", func(b *Book) {
			b.SetPod(with(judgedPod("old"), func(p *corev1.Pod) { p.Spec.NodeName = "n" }))
		}, false},
		{"a node comes", func(b *Book) { b.SetNode(taintedNode("m", "x")) }, true},
		{"a node opens", func(b *Book) { b.SetNode(taintedNode("n", "x")) }, true},
		{"a node closes", func(b *Book) { b.SetNode(taintedNode("n", "x", "y", "z")) }, false},
	} {
		b, clock := newBook()
		b.SetNode(taintedNode("n", "x", "y"))
		b.SetPod(judgedPod("a"))
		b.SetPod(nominatedPod("told", "n"))
		b.SetPod(with(judgedPod("old"), func(p *corev1.Pod) { p.Spec.NodeName = "n" }))
		clock.tick(time.Minute)
		c.do(b)
		if stir := b.Snapshot().SchedulerActivity; stir.Last.Equal(clock.now()) != c.stirs {
			t.Errorf("%s: the last sign of kube-scheduler is at %s, now is %s", c.what, stir.Last, clock.now())
		}
	}
}

func TestARushHasABeginning(t *testing.T) {
	b, clock := newBook()
	b.SetPod(judgedPod("a"))
	clock.tick(time.Second)
	began := clock.now()
	say := func(text string) {
		b.SetPod(with(judgedPod("a"), func(p *corev1.Pod) { p.Status.Conditions[0].Message = text }))
	}
	for i := range 5 {
		say(string(rune('a' + i)))
		clock.tick(activityGap)
	}
	if stir := b.Snapshot().SchedulerActivity; !stir.Began.Equal(began) || !stir.Last.Equal(began.Add(4*activityGap)) {
		t.Errorf("one rush from %s: %+v", began, stir)
	}
	b.SetNode(taintedNode("n"))
	if stir := b.Snapshot().SchedulerActivity; !stir.Began.Equal(clock.now()) {
		t.Errorf("a node that opens is reason for another, at %s: %+v", clock.now(), stir)
	}
	clock.tick(time.Second)
	say("z")
	if stir := b.Snapshot().SchedulerActivity; !stir.Began.Equal(clock.now()) {
		t.Errorf("another rush, at %s: %+v", clock.now(), stir)
	}
}

// TestANominationMayBeGoneBeforeItIsKnownToBeWritten: kube-scheduler takes it back so fast that the watch has shown
// both before the answer to the write is there. It must not be waited for.
func TestANominationMayBeGoneBeforeItIsKnownToBeWritten(t *testing.T) {
	b, clock := newBook()
	b.SetPod(judgedPod("a"))
	c := command.Nominate{UID: "a", Node: "n"}
	for _, taken := range []bool{true, false} {
		b.Begin(c)
		if taken {
			b.SetPod(nominatedPod("a", "n"))
			b.SetPod(judgedPod("a"))
		}
		b.Record(command.Outcome{Command: c, At: clock.now(), Writes: []command.Write{{Kind: command.KindPod, Name: "a",
			Nominated: true, Node: "n"}}})
		if busy := b.Snapshot().InFlight[c.Key()]; busy == taken {
			t.Errorf("taken back: %v, under way: %v", taken, busy)
		}
	}
}
