package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// TestEC2NodesAreReplaced has AWS take a spot instance back, and then publishes a new image: in both cases what takes a
// node's place is ready before its pods leave.
func TestEC2NodesAreReplaced(t *testing.T) {
	w := newAWSWorld(t)
	w.create(ec2Class("default"), ec2Pool("default", bought("spot"), budgets("1")))
	w.create(w.deployment("web", 2, "3")) // each fills a node
	w.run()
	w.eventually(w.allRunning(2))
	w.eventually(w.initialized(2))
	w.step("2 nodes are there")
	e := w.record()
	e.begin(2)
	w.spotInterruptionIsSurvived(e)
	w.newImageRollsInsideTheBudget(e)
}

// spotInterruptionIsSurvived interrupts a spot instance. It is gone before AWS ends it, and its pod did not have to
// wait for a machine.
func (w *awsWorld) spotInterruptionIsSurvived(e *recorder) {
	w.Helper()
	before := w.alive()
	victim := before[0]
	known := map[string]bool{}
	for _, c := range w.claims() {
		known[c.Name] = true
	}
	if err := w.cloud.World.InterruptSpot(victim.ID); err != nil {
		w.Fatal(err)
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
		w.Errorf("after %s it was AWS that ended the instance", took)
	}
	w.eventually(w.allRunning(2))
	w.eventually(w.initialized(2))
	w.eventually(w.tally)
	w.step("an interruption is survived; a pod waited for %s", e.lacked())
	w.survived(e, victim.PrivateDNS, known)
	for _, i := range w.alive() {
		isNew := !slices.ContainsFunc(before, func(b cloud.Instance) bool { return b.ID == i.ID })
		if isNew && i.Type == victim.Type && i.Zone == victim.Zone {
			w.Errorf("%s in %s, which AWS has just taken back, was bought again", i.Type, i.Zone)
		}
	}
}

// survived tests that pods left that node only, that they left once a node that was not known before was ready, and
// that they run there: no other was made for them.
func (w *awsWorld) survived(e *recorder, node string, known map[string]bool) {
	w.Helper()
	left := e.departures()
	if len(left) != 1 || left[0].node != node {
		w.Fatalf("these pods had to leave: %+v; want the one of the interrupted node %s", left, node)
	}
	made := slices.DeleteFunc(w.claims(), func(c v1.NodeClaim) bool { return known[c.Name] })
	if len(made) != 1 {
		w.Fatalf("%d nodes were made when one was interrupted, want 1", len(made))
	}
	if !e.readyBy(made[0].Name, left[0].at) {
		w.Errorf("a pod left node %s before %s was ready", node, made[0].Name)
	}
	if !slices.ContainsFunc(w.pods(), func(p corev1.Pod) bool { return p.Spec.NodeName == made[0].Status.NodeName }) {
		w.Errorf("no pod is on node %s, which was made to take the place of %s", made[0].Status.NodeName, node)
	}
	if e.lacked() == 0 {
		w.Error("the witness has not seen that a pod left and came back")
	}
	w.eventually(func() string {
		for name := range known {
			if len(w.messages("SpotInterrupted", name)) > 0 {
				return ""
			}
		}
		return "no event tells of the interruption"
	})
}

// newImageRollsInsideTheBudget publishes an image. The controller, which the lab has ask every ten seconds what is the
// latest one, notices by itself. Nodes are replaced one at a time.
func (w *awsWorld) newImageRollsInsideTheBudget(e *recorder) {
	w.Helper()
	e.begin(2)
	release, err := w.cloud.Images.Publish("al2023", 0)
	w.must(err)
	w.eventually(func() string {
		if amis := w.classOf("default").Status.AMIs; !slices.ContainsFunc(amis, func(a awsv1.AMI) bool {
			return slices.Contains(release.Images, a.ID)
		}) {
			return fmt.Sprintf("the class has %v and none of %v", amis, release.Images)
		}
		return ""
	})
	w.step("the new image is noticed")
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
	w.step("both nodes have the new image")
	e.held(1, 1)
	if !e.gave("Drifted") || len(e.departures()) != 2 {
		w.Errorf("for drift: %v; %d pods had to leave, each should once", e.gave("Drifted"), len(e.departures()))
	}
}
