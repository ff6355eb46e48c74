package command

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/lab/internal/labdir"
)

func run(args ...string) (string, error) {
	var out bytes.Buffer
	root := New()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

func TestWithoutALab(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	for _, c := range []struct {
		args    []string
		out     string
		failure string
	}{
		{[]string{"down"}, "none runs in " + dir, ""},
		{[]string{"down", "--delete"}, "none runs", ""},
		{[]string{"status"}, "", "no lab runs in " + dir},
		{[]string{"restart", "etcd"}, "", "no lab runs in " + dir},
		{[]string{"kubectl", "--", "get", "nodes"}, "", "no lab runs in " + dir},
	} {
		out, err := run(append(c.args[:1:1], append([]string{"--dir", dir}, c.args[1:]...)...)...)
		if !strings.Contains(out, c.out) {
			t.Errorf("%v: printed %q, want %q", c.args, out, c.out)
		}
		if (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
			t.Errorf("%v: got error %v, want %q", c.args, err, c.failure)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking made %s: %v", dir, err)
	}
}

func TestEmptyDirIsRefused(t *testing.T) {
	if _, err := run("up", "--dir="); err == nil || !strings.Contains(err.Error(), "--dir is empty") {
		t.Errorf("got %v", err)
	}
}

func TestUpAndDeleteRespectForeignFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"up"}, {"up", "--detach"}, {"down", "--delete"}} {
		if _, err := run(append(args, "--dir="+dir)...); err == nil || !strings.Contains(err.Error(), "--dir "+dir) {
			t.Errorf("%v: got %v, want an error about --dir", args, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "thesis")); err != nil {
		t.Errorf("a foreign file is gone: %v", err)
	}
}

func TestTakenDirectory(t *testing.T) {
	dir, err := labdir.At(filepath.Join(t.TempDir(), "lab"))
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Prepare(); err != nil {
		t.Fatal(err)
	}
	lock, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	for _, args := range [][]string{{"up"}, {"up", "--detach"}} {
		_, err := run(append(args, "--dir="+dir.Path())...)
		var taken *labdir.TakenError
		if !errors.As(err, &taken) {
			t.Errorf("%v: got %v, want a TakenError", args, err)
		}
	}
	if _, err := run("status", "--dir="+dir.Path()); err == nil || !strings.Contains(err.Error(),
		"starting or ending") {
		t.Errorf("status: got %v", err)
	}
}

func TestFollow(t *testing.T) {
	for _, c := range []struct{ report, out, failure string }{
		{"progress one\nready lab: ready\nprogress never shown\n", "lab: one\nlab: ready\n", ""},
		{"progress one\nerror it broke\n", "lab: one\n", "it broke"},
		{"progress one\n", "lab: one\n", "without a word"},
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
