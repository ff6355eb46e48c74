package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/replay"
)

// runPlanted starts a controller whose planner fails on pods with the label app=poison: the tests of operator, which
// have such a planner, and not the program that people run.
func (w *world) runPlanted(flags ...string) *controller {
	w.Helper()
	path := filepath.Join(w.TempDir(), "planted")
	if out, err := exec.Command("go", "test", "-c", "-o", path, "../../operator").CombinedOutput(); err != nil {
		w.Fatalf("building the tests of operator: %v: %s", err, out)
	}
	args := append([]string{"--kubeconfig", w.lab.Kubeconfig(), "--bind-address", "127.0.0.1", "--metrics-port", "0",
		"--health-probe-port", "0",
		"--disable-leader-election"}, flags...)
	cmd := exec.Command(path, "-test.run=^TestPlantedController$", "-test.timeout=0")
	cmd.Env = []string{"TENON_TEST_PLANTED_CONTROLLER=" + strings.Join(args, " ")}
	return w.started(cmd)
}

// othersWait is how long pods may wait on which the planner does not fail, from when it first failed.
const othersWait = 10 * time.Second

// TestAPlannerThatFailsOnOnePod has the planner panic whenever a certain pod looks for a place. The pod is told,
// everybody else gets nodes, the process stays the same one, and the file that is written can be replayed.
func TestAPlannerThatFailsOnOnePod(t *testing.T) {
	w := newWorld(t)
	// Each has a pool of its own: what runs without a plan's help runs where the scheduler likes, on any node with
	// room.
	w.create(nodeClass("default"), nodePool("default", onDemand("16")), nodePool("other", onDemand("16")))
	in := func(pool, name string, n int32) *appsv1.Deployment {
		d := w.deployment(name, n, "9")
		d.Spec.Template.Spec.NodeSelector = map[string]string{v1.NodePoolLabelKey: pool}
		return d
	}
	dir := t.TempDir()
	c := w.runPlanted("--snapshot-dir", dir)
	w.eventually(w.canLaunch("default", "other"))
	// It looks away while the pods come, the one on which the planner fails last: so its first plan of them is for all.
	w.must(c.cmd.Process.Signal(syscall.SIGSTOP))
	w.create(in("default", "together", 3))
	w.pending(3)
	w.create(in("other", "poison", 1))
	w.pending(4)
	w.must(c.cmd.Process.Signal(syscall.SIGCONT))
	w.eventually(w.allRunning(3))
	ran := time.Now()
	w.eventually(w.toldOfFailure)
	began := time.Now()
	w.create(in("default", "later", 3))
	w.eventually(w.allRunning(6))
	t.Logf("with the pod in quarantine, three other pods run after %s", time.Since(began).Round(time.Millisecond))
	w.eventually(c.logged("planted for the test"))
	w.eventually(c.logged("wrote a snapshot file"))
	path, failed := w.snapshotFile(dir)
	if waited := ran.Sub(failed.Snapshot.Now); waited > othersWait {
		t.Errorf("pods that came together with the one that the planner fails on run %s after it has failed", waited)
	} else {
		t.Logf("pods that came together with the one that the planner fails on run %s after it has failed", waited)
	}
	out, err := exec.Command("go", "run", "../../cmd/tenon", "replay", path).CombinedOutput()
	if err != nil || !containsAll(string(out), []string{"the planner had failed: planted for the test",
		"4 pods (4 without a place)"}) {
		t.Errorf("replayed: %v\n%s", err, out)
	}
	select {
	case <-c.done:
		t.Error("the controller has ended")
	default:
	}
}

// canLaunch says which pool is not ready yet.
func (w *world) canLaunch(pools ...string) func() string {
	return func() string {
		for _, name := range pools {
			var p v1.NodePool
			w.must(w.c.Get(w.ctx, client.ObjectKey{Name: name}, &p))
			if !meta.IsStatusConditionTrue(p.Status.Conditions, "tenon.sh/CanLaunch") {
				return "pool " + name + " cannot launch yet"
			}
		}
		return ""
	}
}

// snapshotFile finds and reads the only file that was written of a plan that failed. Its time is when that plan began.
func (w *world) snapshotFile(dir string) (string, *replay.Case) {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "tenon-snapshot-*-make.json.gz"))
	if err != nil || len(files) != 1 {
		w.Fatalf("there are %v (%v)", files, err)
	}
	f, err := os.Open(files[0])
	w.must(err)
	defer func() { _ = f.Close() }()
	c, err := replay.Read(f, replay.DefaultLimits())
	w.must(err)
	return files[0], c
}

// toldOfFailure asks whether the pod was told that the planner fails on it.
func (w *world) toldOfFailure() string {
	var events corev1.EventList
	w.must(w.c.List(w.ctx, &events, client.InNamespace(w.lab.Namespace())))
	for _, e := range events.Items {
		if strings.HasPrefix(e.InvolvedObject.Name, "poison-") && e.Reason == "FailedScheduling" &&
			strings.Contains(e.Message, "Tenon's planner failed on pods like this one, which is a mistake in Tenon: "+
				"planted for the test") {
			return ""
		}
	}
	return fmt.Sprintf("none of %d events tells the pod that the planner fails on it", len(events.Items))
}
