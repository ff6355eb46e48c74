package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// runPlanted starts a controller whose planner fails on pods with the label app=poison: the tests of cmd/tenon, which
// have such a planner, and not the program that people run.
func (w *world) runPlanted(flags ...string) *controller {
	w.Helper()
	path := filepath.Join(w.TempDir(), "planted")
	if out, err := exec.Command("go", "test", "-c", "-o", path, "../../cmd/tenon").CombinedOutput(); err != nil {
		w.Fatalf("building the tests of cmd/tenon: %v: %s", err, out)
	}
	args := append([]string{"--kubeconfig", w.lab.Kubeconfig(), "--bind-address", "127.0.0.1", "--metrics-port", "0", "--health-probe-port", "0",
		"--disable-leader-election"}, flags...)
	cmd := exec.Command(path, "-test.run=^TestPlantedController$", "-test.timeout=0")
	cmd.Env = []string{"TENON_TEST_PLANTED_CONTROLLER=" + strings.Join(args, " ")}
	return w.started(cmd)
}

// TestAPlannerThatFailsOnOnePod has the planner panic whenever a certain pod looks for a place. The pod is told,
// everybody else gets nodes, the process stays the same one, and the file that is written can be replayed.
func TestAPlannerThatFailsOnOnePod(t *testing.T) {
	w := newWorld(t)
	// Each has a pool of its own: what runs without a plan's help runs where the scheduler likes, on any node with room.
	w.create(nodeClass("default"), nodePool("default", onDemand("16")), nodePool("other", onDemand("16")))
	dir := t.TempDir()
	c := w.runPlanted("--snapshot-dir", dir)
	poison, web := w.deployment("poison", 1, "9"), w.deployment("web", 3, "9")
	poison.Spec.Template.Spec.NodeSelector = map[string]string{v1.NodePoolLabelKey: "other"}
	web.Spec.Template.Spec.NodeSelector = map[string]string{v1.NodePoolLabelKey: "default"}
	w.create(poison)
	w.eventually(w.toldOfFailure)
	began := time.Now()
	w.create(web)
	w.eventually(w.allRunning(3))
	t.Logf("with the pod in quarantine, three other pods run after %s", time.Since(began).Round(time.Millisecond))
	w.eventually(c.logged("planted for the test"))
	w.eventually(c.logged("wrote a snapshot file"))
	files, err := filepath.Glob(filepath.Join(dir, "tenon-snapshot-*-make.json.gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("there are %v (%v)", files, err)
	}
	path, err := buildOnce()
	w.must(err)
	out, err := exec.Command(path, "replay", files[0]).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the planner had failed: planted for the test") || !strings.Contains(string(out), "1 pods (1 without a place)") {
		t.Errorf("replayed: %v\n%s", err, out)
	}
	select {
	case <-c.done:
		t.Error("the controller has ended")
	default:
	}
}

// toldOfFailure asks whether the pod was told that the planner fails on it.
func (w *world) toldOfFailure() string {
	var events corev1.EventList
	w.must(w.c.List(w.ctx, &events, client.InNamespace(w.lab.Namespace())))
	for _, e := range events.Items {
		if strings.HasPrefix(e.InvolvedObject.Name, "poison-") && e.Reason == "FailedScheduling" && strings.Contains(e.Message, "Tenon's planner failed on pods like this one, which is a mistake in Tenon: planted for the test") {
			return ""
		}
	}
	return fmt.Sprintf("none of %d events tells the pod that the planner fails on it", len(events.Items))
}
