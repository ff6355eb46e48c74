package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseDefaults(t *testing.T) {
	o, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.count != 3 || o.cut != 5*time.Minute || o.only != "" || o.tenonOnly || o.peerOnly ||
		o.out != filepath.Join("..", "out", "peer.json") {
		t.Errorf("got %+v", o)
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-count", "0"}, "-count: 0 is too few"},
		{[]string{"-cut", "0s"}, "-cut: 0s is too short"},
		{[]string{"-tenon-only", "-peer-only"}, "leave nobody"},
		{[]string{"-only", "nothing"}, `-only: no workload's name matches "nothing"`},
		{[]string{"fleet"}, `"fleet" is not a flag`},
	} {
		err := run(t.Context(), c.args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.args, err, c.want)
		}
	}
	var help bytes.Buffer
	if err := run(t.Context(), []string{"-help"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) ||
		!strings.Contains(help.String(), "-cpuprofile") {
		t.Errorf("got %v and %q", err, help.String())
	}
}

func TestComparesInOneRun(t *testing.T) {
	var lines bytes.Buffer
	file := filepath.Join(t.TempDir(), "peer.json")
	if err := run(t.Context(), []string{"-only", "^diverse-100$", "-count", "1", "-out", file}, &lines,
		io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"workload=diverse-100 pods=100 types=400 ", "tenon_unplaced=0 peer_unplaced=0 " +
		"tenon_valid=true", "verdict="} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("no %q in %s", want, lines.String())
		}
	}
	if content, err := os.ReadFile(file); err != nil || !bytes.Contains(content, []byte("sigs.k8s.io/karpenter")) {
		t.Errorf("the file holds %s, %v", content, err)
	}
}
