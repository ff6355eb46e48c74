package webhook_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tenon-sh/tenon/internal/lab"
	"github.com/tenon-sh/tenon/internal/webhook"
)

// TestWayOut runs what the page on moving tells people to type once Tenon has stopped: v1beta1 is no longer served,
// nobody is asked to convert, and v1 works as before.
func TestWayOut(t *testing.T) {
	w := newWorld(t)
	replica := w.start(true)
	w.serves()
	w.must(w.c.Create(w.ctx, w.parse(v1Pool)[0]))
	replica.stop()
	replica.Wait()
	w.shell(wayOut(t))
	for _, name := range webhook.Definitions() {
		definition := w.definition(name)
		if c := definition.Spec.Conversion; c.Strategy != apiextensionsv1.NoneConverter || c.Webhook != nil {
			t.Errorf("%s is converted by %+v", name, c)
		}
		for _, v := range definition.Spec.Versions {
			if v.Served != (v.Name == "v1") {
				t.Errorf("%s: %s is served: %v", name, v.Name, v.Served)
			}
		}
	}
	class := []string{"spec", "template", "spec", "nodeClassRef", "name"}
	if got := field(w.read("karpenter.sh/v1", "NodePool", "one"), class...); got != "default" {
		t.Errorf("the NodePool's class is %q", got)
	}
	w.start(true) // whoever comes back finds it as after an installation
	w.serves()
}

// wayOut is the loop over the definitions in the page on moving.
func wayOut(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tasks", "migrate.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(page), "        for crd in ")
	loop, _, ends := strings.Cut(rest, "        done\n")
	if !begins || !ends {
		t.Fatal("docs/tasks/migrate.md has no loop over the definitions")
	}
	return "set -e; for crd in " + loop + "done"
}

// shell runs a command as a reader would, with the lab's kubectl.
func (w *world) shell(command string) {
	w.Helper()
	kube, err := lab.Binary(w.ctx, io.Discard)
	w.must(err)
	tools := w.TempDir()
	w.must(os.Symlink(kube, filepath.Join(tools, "kubectl")))
	cmd := exec.CommandContext(w.ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG="+w.lab.Kubeconfig())
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%s: %v\n%s", command, err, out)
	}
}
