package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestEC2NewImageRollsInsideTheBudget publishes a new image. The controller looks for one every half hour; a new controller looks
// at once. Nodes are replaced, one at a time, and no pod leaves before there is room for it elsewhere.
func TestEC2NewImageRollsInsideTheBudget(t *testing.T) {
	w := newAWSWorld(t)
	w.create(ec2Class("default"), ec2Pool("default", bought("on-demand"), budgets("1")))
	w.create(w.deployment("web", 2, "3")) // each fills a node
	first := w.run()
	w.eventually(w.allRunning(2))
	w.eventually(w.initialized(2))
	e := w.witness()
	e.begin(2)
	release, err := w.cloud.Images.Publish("al2023", 0)
	w.must(err)
	first.kill()
	w.run()
	w.eventually(func() string {
		old := 0
		for _, i := range w.alive() {
			if !strings.Contains(fmt.Sprint(release.Images), i.Image) {
				old++
			}
		}
		if n := len(w.alive()); old > 0 || n != 2 {
			return fmt.Sprintf("%d of %d instances have another image than those of %s", old, n, release.Version)
		}
		return ""
	})
	w.eventually(w.allRunning(2))
	w.eventually(w.tally)
	e.held(1, 1)
	if !e.gave("Drifted") || len(e.departures()) != 2 {
		t.Errorf("for drift: %v; %d pods had to leave, each should once", e.gave("Drifted"), len(e.departures()))
	}
}

// TestEC2SpotInterruptionIsSurvived has AWS take a spot instance back. What takes its place is ready before its pods leave, and the
// instance is gone before AWS ends it.
func TestEC2SpotInterruptionIsSurvived(t *testing.T) {
	w := newAWSWorld(t)
	w.create(ec2Class("default"), ec2Pool("default", bought("spot")))
	w.create(w.deployment("web", 3, "3")) // each fills a node
	w.run()
	w.eventually(w.allRunning(3))
	w.eventually(w.initialized(3))
	e := w.witness()
	e.begin(3)
	victim := w.alive()[0]
	known := map[string]bool{}
	for _, c := range w.claims() {
		known[c.Name] = true
	}
	if err := w.cloud.World.InterruptSpot(victim.ID); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	w.eventually(func() string {
		for _, i := range w.alive() {
			if i.ID == victim.ID {
				return "the interrupted instance still runs"
			}
		}
		return ""
	})
	if took := time.Since(begun); took > warning {
		t.Errorf("after %s it was AWS that ended the instance", took)
	}
	w.eventually(w.allRunning(3))
	w.eventually(w.initialized(3))
	w.eventually(w.tally)
	w.survived(e, victim.PrivateDNS, known)
}

// survived tests that pods left the node only, and only once a node that was not known before was ready.
func (w *awsWorld) survived(e *witness, node string, known map[string]bool) {
	w.Helper()
	left := e.departures()
	if len(left) != 1 {
		w.Errorf("%d pods had to leave, want the one of the interrupted node", len(left))
	}
	for _, d := range left {
		ready := false
		for _, c := range w.claims() {
			ready = ready || !known[c.Name] && e.readyBy(c.Name, d.at)
		}
		if !ready || d.node != node {
			w.Errorf("a pod left node %s, with a replacement ready: %v; the interrupted one is %s", d.node, ready, node)
		}
	}
	events := 0
	for _, c := range append(w.claims(), v1.NodeClaim{}) {
		events += len(w.messages("SpotInterrupted", c.Name))
	}
	for name := range known {
		events += len(w.messages("SpotInterrupted", name))
	}
	if events == 0 {
		w.Error("no event tells of the interruption")
	}
}
