package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestParseDefaults(t *testing.T) {
	o, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.count != 3 || o.pods != 500 || o.only != "" || o.floor || o.logLevel != "info" {
		t.Errorf("got %+v", o)
	}
}

func TestParseRefuses(t *testing.T) {
	cases := []struct {
		args []string
		want string
	}{
		{[]string{"-count", "0"}, "-count: 0 is too few"},
		{[]string{"-pods", "0"}, "-pods: 0 is out of range"},
		{[]string{"-pods", "5001"}, "-pods: 5001 is out of range"},
		{[]string{"-only", "both"}, `-only: "both" is neither tenon nor peer`},
		{[]string{"-log-level", "loud"}, `-log-level: "loud" is not one of`},
		{[]string{"pods"}, `"pods" is not a flag`},
		{[]string{"-nonsense"}, "flag provided but not defined: -nonsense (see -help)"},
	}
	for _, c := range cases {
		_, err := parse(c.args, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: got %v; want one line with %q", c.args, err, c.want)
		}
	}
}

func TestHelpNamesTheFlags(t *testing.T) {
	var help bytes.Buffer
	if _, err := parse([]string{"-help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("got %v", err)
	}
	for _, name := range []string{"-tenon", "-count", "-pods", "-only", "-floor", "-keep-logs", "-log-level"} {
		if !strings.Contains(help.String(), name+" ") && !strings.Contains(help.String(), name+"\n") {
			t.Errorf("the help does not name %s:\n%s", name, help.String())
		}
	}
}

func TestRunNeedsTenon(t *testing.T) {
	err := run(t.Context(), []string{"-tenon", t.TempDir()}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "-tenon: ") || !strings.Contains(err.Error(), "make build") {
		t.Errorf("got %v", err)
	}
}

// The peer is pinned twice: as a program for the lab and as a library. Figures of the two are only comparable if both are
// the same release.
func TestBothPinsOfThePeerAgree(t *testing.T) {
	pin := regexp.MustCompile(`sigs\.k8s\.io/karpenter (v\S+)`)
	var found []string
	for _, folder := range []string{peerPin, "versus"} {
		content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		match := pin.FindSubmatch(content)
		if match == nil {
			t.Fatalf("%s/go.mod names no version of the peer", folder)
		}
		found = append(found, string(match[1]))
	}
	if found[0] != found[1] {
		t.Errorf("peer/go.mod has %s and versus/go.mod has %s", found[0], found[1])
	}
}
