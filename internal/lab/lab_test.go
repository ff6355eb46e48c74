package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTheStampedVersionIsTheRequiredOne(t *testing.T) {
	source, err := findSource()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^\s+k8s\.io/kubernetes (v\S+)$`).FindSubmatch(content)
	if match == nil || string(match[1]) != kubernetesVersion {
		t.Errorf("lab/go.mod requires k8s.io/kubernetes %s, the build is stamped %s", match, kubernetesVersion)
	}
	if want := "v" + kubernetesMajor + "." + kubernetesMinor + "."; !strings.HasPrefix(kubernetesVersion, want) {
		t.Errorf("%s does not begin with %s", kubernetesVersion, want)
	}
}

func TestSourceKeyFollowsWhatIsBuilt(t *testing.T) {
	source := t.TempDir()
	write(t, filepath.Join(source, "go.mod"), "module x\n")
	write(t, filepath.Join(source, "cmd", "main.go"), "package main\n")
	write(t, filepath.Join(source, "stages.yaml"), "a: 1\n")
	key := func(identity string) string {
		t.Helper()
		k, err := sourceKey(source, identity)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := key("go1")
	write(t, filepath.Join(source, "cmd", "main_test.go"), "package main\n")
	write(t, filepath.Join(source, ".lab", "x.go"), "package x\n")
	write(t, filepath.Join(source, "README.md"), "words\n")
	if key("go1") != first {
		t.Error("a test, a hidden folder or words changed the key")
	}
	if key("go2") == first {
		t.Error("another compiler did not change the key")
	}
	for _, name := range []string{"cmd/main.go", "stages.yaml", "go.mod", "go.sum"} {
		before := key("go1")
		write(t, filepath.Join(source, name), name)
		if key("go1") == before {
			t.Errorf("a change of %s did not change the key", name)
		}
	}
}

func TestFindSource(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "lab", "go.mod"), "// comment\nmodule "+modulePath+"\n")
	inside := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{root, inside, filepath.Join(root, "lab")} {
		t.Chdir(folder)
		got, err := findSource()
		if err != nil || filepath.Base(got) != "lab" {
			t.Errorf("from %s: %q, %v", folder, got, err)
		}
	}
	other := t.TempDir()
	write(t, filepath.Join(other, "lab", "go.mod"), "module example.com/other/lab\n")
	t.Chdir(other)
	if got, err := findSource(); err == nil || !strings.Contains(err.Error(), BinaryVariable) {
		t.Errorf("in a stranger's folder: %q, %v; want an error that names %s", got, err, BinaryVariable)
	}
}

func TestGivenBinary(t *testing.T) {
	folder := t.TempDir()
	plain, program := filepath.Join(folder, "plain"), filepath.Join(folder, "program")
	write(t, plain, "")
	write(t, program, "")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(BinaryVariable, program)
	if got, err := Binary(t.Context(), &bytes.Buffer{}); err != nil || got != program {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{plain, folder, filepath.Join(folder, "none")} {
		t.Setenv(BinaryVariable, bad)
		if _, err := Binary(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(),
			BinaryVariable+"="+bad) {
			t.Errorf("%s: got %v, want an error that names the variable", bad, err)
		}
	}
}

func TestMissingCompiler(t *testing.T) {
	t.Setenv(BinaryVariable, "")
	t.Setenv("PATH", t.TempDir())
	_, err := Binary(t.Context(), &bytes.Buffer{})
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v, want one line", err)
	}
	for _, want := range []string{"Go 1.26", "PATH", BinaryVariable} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, err)
		}
	}
}

func TestKeptFlags(t *testing.T) {
	for given, want := range map[string]string{
		"":                                  "",
		"-mod=vendor -race":                 "",
		"-modcacherw":                       "-modcacherw",
		"-mod=mod --modcacherw -tags=x -v":  "--modcacherw",
		"-buildvcs=false -trimpath -p=1 -x": "",
	} {
		if got := keptFlags(given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

func TestPruneKeepsTheRecentlyUsed(t *testing.T) {
	c := cache{folder: t.TempDir()}
	now := time.Now()
	for age, key := range []string{"a", "b", "c", "d"} {
		write(t, c.path(key), key)
		at := now.Add(-time.Duration(age) * time.Hour)
		if err := os.Chtimes(filepath.Dir(c.path(key)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	// Using the oldest saves it.
	if _, ok := c.lookup("d"); !ok {
		t.Fatal("d is not there")
	}
	if err := c.prune(); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, key := range []string{"a", "b", "c", "d"} {
		if _, err := os.Stat(c.path(key)); err == nil {
			left = append(left, key)
		}
	}
	if fmt.Sprint(left) != "[a d]" {
		t.Errorf("left %v, want [a d]", left)
	}
}

func TestOneBuilderAtATime(t *testing.T) {
	c := cache{folder: t.TempDir()}
	unlock, err := c.lock(t.Context(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.lock(ctx, &said); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second builder got %v, want to wait in vain", err)
	}
	if !strings.Contains(said.String(), "waiting") {
		t.Errorf("the second builder said %q", said.String())
	}
	unlock()
	again, err := c.lock(t.Context(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestCounterReadsBuildOutput(t *testing.T) {
	c := &counter{}
	c.read(strings.NewReader("go: downloading x v1\nfmt\nk8s.io/api/core/v1\n# broken/pkg\nbroken/pkg/a.go:3:1: " +
		"undefined: b\n"))
	if got := c.packages.Load(); got != 2 {
		t.Errorf("counted %d packages, want 2", got)
	}
	if got := c.complaint(); got != "broken/pkg/a.go:3:1: undefined: b" {
		t.Errorf("complaint %q", got)
	}
	full := explainFull(errors.New("write /x: no space left on device"), "/cache")
	if !strings.Contains(full.Error(), "no room to build") || !strings.Contains(full.Error(), "/cache") {
		t.Errorf("got %q", full)
	}
}

func TestFollow(t *testing.T) {
	for _, c := range []struct{ report, out, failure string }{
		{"progress one\nready lab: ready\nprogress never shown\n", "lab: one\nlab: ready\n", ""},
		{"error it broke\n", "", "it broke"},
		{"progress one\n", "lab: one\n", "ended before it was ready"},
	} {
		var out bytes.Buffer
		err := follow(strings.NewReader(c.report), &out)
		if out.String() != c.out {
			t.Errorf("%q: printed %q, want %q", c.report, out.String(), c.out)
		}
		if (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
			t.Errorf("%q: got %v, want %q", c.report, err, c.failure)
		}
	}
}
