package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestParseDefaults(t *testing.T) {
	o, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.pods != 0 || o.only != "" || o.tenonOnly || o.peerOnly || o.skipBase || o.timeout != 30*time.Minute ||
		o.idle != time.Minute || o.logLevel != "info" {
		t.Errorf("got %+v", o)
	}
}

func TestParseRefuses(t *testing.T) {
	cases := []struct {
		args []string
		want string
	}{
		{[]string{"-pods", "-1"}, "-pods: -1 is out of range"},
		{[]string{"-pods", "100001"}, "-pods: 100001 is out of range"},
		{
			[]string{"-only", "both"},
			`-only: "both" is not one of down, down-1000, drift, drift-500, idle, idle-20000, rss, rss-20000, ` +
				`settle, settle-250, settle-700, up, up-1000, up-20000`,
		},
		{[]string{"-only", "up-1000", "-pods", "50"}, `-only: "up-1000" is not one of down, down-50`},
		{[]string{"-tenon-only", "-peer-only"}, "leave nothing"},
		{[]string{"-timeout", "0s"}, "-timeout: 0s is too short"},
		{[]string{"-idle", "1ms"}, "-idle: 1ms is too short"},
		{[]string{"-quiet", "0s"}, "-quiet: 0s is too short"},
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

func TestPlan(t *testing.T) {
	cases := []struct {
		args []string
		want string
	}{
		{nil, "1000[up down]base 20000[up rss idle]base 1000[settle]700 1000[settle]250 1000[drift]500"},
		{[]string{"-skip-base"}, "1000[up down] 20000[up rss idle] 1000[settle]700 1000[settle]250 1000[drift]500"},
		{[]string{"-only", "up"}, "1000[up]base 20000[up]base"},
		{[]string{"-only", "down-1000,idle"}, "1000[down] 20000[idle]"},
		{[]string{"-only", "up-20000,rss-20000"}, "20000[up rss]base"},
		{[]string{"-only", "settle-250"}, "1000[settle]250"},
		{[]string{"-only", "settle,drift-500"}, "1000[settle]700 1000[settle]250 1000[drift]500"},
		{[]string{"-pods", "300"}, "300[up rss idle down]base 300[settle]210 300[settle]75 300[drift]150"},
		{[]string{"-pods", "300", "-only", "down-300"}, "300[down]"},
	}
	for _, c := range cases {
		o, err := parse(c.args, io.Discard)
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		var got []string
		for _, s := range plan(o) {
			text := fmt.Sprint(s.pods, s.kinds)
			if s.base {
				text += "base"
			}
			if s.goal > 0 {
				text += fmt.Sprint(s.goal)
			}
			if s.needs("base") != s.base || !s.needs("tenon") || len(s.scenarios()) != len(s.kinds) {
				t.Errorf("%v: %+v is at odds with itself", c.args, s)
			}
			got = append(got, strings.ReplaceAll(text, " [", "["))
		}
		if line := strings.Join(got, " "); line != c.want {
			t.Errorf("%v: got %s, want %s", c.args, line, c.want)
		}
	}
}

func TestHelpNamesTheFlags(t *testing.T) {
	var help bytes.Buffer
	if _, err := parse([]string{"-help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("got %v", err)
	}
	for _, name := range []string{"-tenon", "-only", "-pods", "-tenon-only", "-peer-only", "-skip-base", "-timeout",
		"-idle", "-quiet", "-profiles", "-keep-logs", "-log-level"} {
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

// The peer is pinned twice: as a program for the lab and as a library. Figures of the two are only comparable if both
// are the same release.
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
