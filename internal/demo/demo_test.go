package demo_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// build makes the real program: the demo runs it as its controller.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tenon")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/tenon").CombinedOutput(); err != nil {
		t.Fatalf("building tenon: %v\n%s", err, out)
	}
	return binary
}

func gone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", dir, err)
	}
}

func TestDemo(t *testing.T) {
	binary := build(t)
	t.Run("from start to end", func(t *testing.T) { wholeDemo(t, binary) })
	t.Run("with AWS", func(t *testing.T) { wholeAWSDemo(t, binary) })
	t.Run("interrupted", func(t *testing.T) { interruptedDemo(t, binary) })
	t.Run("kept", func(t *testing.T) { keptDemo(t, binary) })
}

func wholeDemo(t *testing.T, binary string) {
	dir := filepath.Join(t.TempDir(), "demo")
	out, err := exec.CommandContext(t.Context(), binary, "demo", "--dir", dir, "--pods", "20").CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	verdict := regexp.MustCompile(`^demo: 20 pods ran on [1-9]\d* nodes \(\$\d+\.\d{4}/h\) in \d+\.\d s; 0 nodes left$`)
	if err != nil || !verdict.MatchString(lines[len(lines)-1]) {
		t.Fatalf("%v\n%s", err, out)
	}
	gone(t, dir)
}

func wholeAWSDemo(t *testing.T, binary string) {
	dir := filepath.Join(t.TempDir(), "demo")
	out, err := exec.CommandContext(t.Context(), binary, "demo", "--cloud", "aws", "--dir", dir, "--pods",
		"10").CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	verdict := regexp.MustCompile(
		`^demo-aws: 10 pods ran on [1-9]\d* nodes \(\$0\.\d{4}/h\); 1 spot interruption survived; 0 nodes left$`)
	if err != nil || !verdict.MatchString(lines[len(lines)-1]) {
		t.Fatalf("%v\n%s", err, out)
	}
	gone(t, dir)
}

// interruptedDemo interrupts while pods are coming. The pipe ends only when nobody holds it any more: neither the demo
// nor anything that it started.
func interruptedDemo(t *testing.T, binary string) {
	dir := filepath.Join(t.TempDir(), "demo")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "demo", "--dir", dir)
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	lines := bufio.NewReader(read)
	for line := ""; !strings.Contains(line, "scaling"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("the demo ended before its pods came: %v", err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil || !bytes.Contains(rest, []byte("demo: interrupted")) {
		t.Errorf("%v\n%s", err, rest)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted demo must not succeed")
	}
	gone(t, dir)
}

// metricsServed asks the address that a demo has printed.
func metricsServed(t *testing.T, out string) {
	t.Helper()
	at := regexp.MustCompile(`Its metrics     curl (http://127\.0\.0\.1:\d+/metrics)`).FindStringSubmatch(out)
	if at == nil {
		t.Errorf("the demo does not say where the metrics are\n%s", out)
		return
	}
	answer, err := http.Get(at[1])
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Contains(text, []byte("karpenter_nodeclaims_created_total{")) {
		t.Errorf("the metrics at %s count no NodeClaims (%v)", at[1], err)
	}
}

func keptDemo(t *testing.T, binary string) {
	dir := filepath.Join(t.TempDir(), "demo")
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() { _, _ = exec.Command(binary, "demo", "--down", "--dir", dir).CombinedOutput() })
	out, err := run("demo", "--dir", dir, "--pods", "5", "--keep")
	if err != nil || !strings.Contains(out, "export KUBECONFIG="+dir) {
		t.Fatalf("%v\n%s", err, out)
	}
	metricsServed(t, out)
	if out, err := run("lab", "kubectl", "--dir", filepath.Join(dir, "lab"), "--", "get", "nodeclaims", "-o",
		"name"); err != nil || !strings.Contains(out, "nodeclaim.karpenter.sh/") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run("demo", "--dir", dir); err == nil || !strings.Contains(out, "a demo already runs in") {
		t.Errorf("a second demo in the same directory: %v\n%s", err, out)
	}
	if out, err := run("demo", "--down", "--dir", dir); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	gone(t, dir)
}
