package onlab

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/lab/labpods"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
)

// TestLabSystem: the command gives a lab its nodes, once, and ends when it is told to.
func TestLabSystem(t *testing.T) {
	l := labtest.New(t)
	core, err := kubernetes.NewForConfig(l.Config())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, lab: l, c: l.Client(clientgoscheme.Scheme), core: core}
	path, err := tenon()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(l.Kubeconfig())
	out := &bytes.Buffer{}
	serve := exec.CommandContext(t.Context(), path, "lab", "system", "--dir", dir)
	serve.Stdout, serve.Stderr = out, out
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	w.eventually("there are two nodes in two zones", func() string {
		list := &corev1.NodeList{}
		if err := w.c.List(t.Context(), list, client.HasLabels{labpods.NodeLabelKey}); err != nil {
			return err.Error()
		}
		zones := map[string]bool{}
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					zones[list.Items[i].Labels[corev1.LabelTopologyZone]] = true
				}
			}
		}
		if len(zones) != 2 {
			return fmt.Sprintf("%d nodes, ready in %v", len(list.Items), zones)
		}
		return ""
	})
	w.eventually("the record says so", func() string {
		if pid, err := labpods.Running(dir); err != nil || pid != serve.Process.Pid {
			return fmt.Sprint(pid, err)
		}
		return ""
	})
	again, err := exec.CommandContext(t.Context(), path, "lab", "system", "--dir", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(again), "already has system nodes") {
		t.Errorf("a second time: %v\n%s", err, again)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, out)
	}
	if pid, err := labpods.Running(dir); pid != 0 || err != nil {
		t.Errorf("the record still names %d (%v)", pid, err)
	}
}
