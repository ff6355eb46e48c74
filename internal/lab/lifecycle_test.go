package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bench runs the real executable in directories of its own.
type bench struct {
	t      *testing.T
	binary string
	dir    string
}

func newBench(t *testing.T) bench {
	t.Helper()
	binary, err := Binary(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	b := bench{t: t, binary: binary, dir: filepath.Join(t.TempDir(), "lab")}
	t.Cleanup(func() {
		// The context of the test is over by now.
		_ = exec.Command(binary, "down", "--dir", b.dir).Run()
	})
	return b
}

// run runs a subcommand and returns what it printed and whether it succeeded.
func (b bench) run(args ...string) (string, error) {
	b.t.Helper()
	args = append(args[:1:1], append([]string{"--dir", b.dir}, args[1:]...)...)
	output, err := exec.CommandContext(b.t.Context(), b.binary, args...).CombinedOutput()
	return string(output), err
}

func (b bench) must(args ...string) string {
	b.t.Helper()
	output, err := b.run(args...)
	if err != nil {
		b.t.Fatalf("%v: %v\n%s", args, err, output)
	}
	return output
}

// refused runs a subcommand that must fail with one line that has all words.
func (b bench) refused(args []string, words ...string) {
	b.t.Helper()
	output, err := b.run(args...)
	if err == nil {
		b.t.Errorf("%v succeeded:\n%s", args, output)
	}
	line := strings.TrimSuffix(output, "\n")
	for _, word := range words {
		if strings.Contains(line, "\n") || !strings.Contains(line, word) {
			b.t.Errorf("%v: want one line with %q, got\n%s", args, word, output)
		}
	}
}

// processes returns the processes that work in the lab's directory.
func (b bench) processes() []int {
	b.t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.t.Fatal(err)
	}
	var pids []int
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(content, []byte(b.dir)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			b.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func (b bench) gone(what string) {
	b.t.Helper()
	eventually(b.t, what+": all processes to end", func() error {
		if left := b.processes(); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
}

func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	var last error
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if last = ok(); last == nil {
			return
		}
	}
	t.Fatalf("waited in vain for %s: %v", what, last)
}

func TestLifeOfADetachedLab(t *testing.T) {
	b := newBench(t)
	b.refused([]string{"status"}, "no lab runs")
	if out := b.must("up", "--detach"); !strings.Contains(out, "ready in") || !strings.Contains(out, "KUBECONFIG="+
		b.dir+"/kubeconfig") {
		t.Errorf("up said\n%s", out)
	}
	b.refused([]string{"up"}, "already runs", "tenon lab down --dir "+b.dir)
	b.refused([]string{"up", "--detach"}, "already runs")
	version := b.must("kubectl", "version")
	for _, want := range []string{"Client Version: " + kubernetesVersion, "Server Version: " + kubernetesVersion} {
		if !strings.Contains(version, want) {
			t.Errorf("no %q in\n%s", want, version)
		}
	}
	for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if !strings.Contains(b.must("status"), part) {
			t.Errorf("status does not list %s", part)
		}
	}
	b.must("kubectl", "--", "create", "namespace", "kept")
	if out, err := b.run("kubectl", "--", "get", "namespace", "none"); err == nil {
		t.Errorf("kubectl's failure was lost:\n%s", out)
	}

	// Parts that are killed on purpose come back, with their objects; others are left alone.
	etcd, scheduler := b.part("etcd"), b.part("kube-scheduler")
	b.refused([]string{"restart", "kubelet"}, "not a part of the lab", "etcd, kube-apiserver")
	if out := b.must("restart", "etcd", "kube-apiserver"); !strings.Contains(out, "etcd, kube-apiserver: back after") {
		t.Errorf("restart said %q", out)
	}
	if b.part("etcd") == etcd || b.part("kube-scheduler") != scheduler {
		t.Errorf("after the restart status says\n%s", b.must("status"))
	}
	b.must("kubectl", "--", "get", "namespace", "kept")
	b.must("down")
	if left := b.processes(); len(left) > 0 {
		t.Errorf("down returned while %v still ran", left)
	}
	if out := b.must("down"); !strings.Contains(out, "none runs") {
		t.Errorf("the second down said %q", out)
	}

	b.must("up", "--detach")
	b.must("kubectl", "--", "get", "namespace", "kept")
	if out := b.must("down", "--delete"); !strings.Contains(out, "ended") {
		t.Errorf("down said %q", out)
	}
	if _, err := os.Stat(b.dir); !os.IsNotExist(err) {
		t.Errorf("down --delete left %s: %v", b.dir, err)
	}
}

func TestTwoLabsSideBySideAndHowTheyEnd(t *testing.T) {
	killed, hurt := newBench(t), newBench(t)
	started := make(chan string, 1)
	go func() {
		out, err := hurt.run("up", "--detach")
		started <- fmt.Sprint(out, err)
	}()
	killed.must("up", "--detach")
	if said := <-started; !strings.Contains(said, "ready in") {
		t.Fatalf("the second lab did not start: %s", said)
	}
	killed.must("kubectl", "--", "create", "namespace", "here")
	if out, err := hurt.run("kubectl", "--", "get", "namespace", "here"); err == nil {
		t.Errorf("the labs share their objects:\n%s", out)
	}

	// A supervisor that is killed takes its parts along and leaves no lock.
	if err := syscall.Kill(killed.supervisor(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed.gone("killed supervisor")
	killed.refused([]string{"status"}, "no lab runs")

	// A part that dies ends the lab, which says so.
	if err := syscall.Kill(hurt.part("kube-scheduler"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	hurt.gone("killed part")
	content, err := os.ReadFile(filepath.Join(hurt.dir, "logs", "supervisor.log"))
	if err != nil || !strings.Contains(string(content), "kube-scheduler ended (signal: killed)") {
		t.Errorf("the supervisor's last words: %v\n%s", err, content)
	}
	hurt.refused([]string{"status"}, "no lab runs")
}

func (b bench) supervisor() int {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, "lock"))
	if err != nil {
		b.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		b.t.Fatal(err)
	}
	return pid
}

func (b bench) part(name string) int {
	b.t.Helper()
	for line := range strings.Lines(b.must("status")) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != name {
			continue
		}
		pid, err := strconv.Atoi(fields[1])
		if err != nil {
			b.t.Fatal(err)
		}
		return pid
	}
	b.t.Fatalf("no %s in the status", name)
	return 0
}

func TestInterruptedStartLeavesNothing(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &trigger{word: "kube-apiserver", act: cancel}
	l, err := Start(ctx, b.dir, out)
	if err == nil {
		_ = l.Close()
		t.Fatal("an interrupted start succeeded")
	}
	b.gone("interrupted start")
	b.refused([]string{"status"}, "no lab runs")
}

// trigger acts when a word is written.
type trigger struct {
	word string
	act  func()
}

func (w *trigger) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.word)) {
		w.act()
	}
	return len(p), nil
}

func TestTemporaryLabEndsWithClose(t *testing.T) {
	b := newBench(t)
	l, err := StartTemporary(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	b.dir = l.Dir()
	if _, err := os.Stat(l.Kubeconfig()); err != nil {
		t.Error(err)
	}
	b.must("status")
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left := b.processes(); len(left) > 0 {
		t.Errorf("Close returned while %v still ran", left)
	}
	if err := l.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	if _, err := os.Stat(l.Dir()); !os.IsNotExist(err) {
		t.Errorf("the directory of a temporary lab is still there: %v", err)
	}
	select {
	case <-l.Done():
	default:
		t.Error("Done is open after Close")
	}
}
