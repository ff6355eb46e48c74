//go:build !windows

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/lab"
)

// handOverVariable makes this test executable run "tenon lab" itself, because
// handing over replaces the process.
const handOverVariable = "TENON_TEST_LAB_ARGUMENTS"

func TestLabHandsItsArgumentsOver(t *testing.T) {
	if given, ok := os.LookupEnv(handOverVariable); ok {
		cmd := newLabCommand()
		cmd.SetArgs(strings.Fields(given))
		t.Fatal("did not hand over: ", cmd.Execute())
	}
	echo := filepath.Join(t.TempDir(), "echo")
	if err := os.WriteFile(echo, []byte("#!/bin/sh\necho \"$*\"\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	for _, dir := range []string{".lab", "x"} {
		if err := os.Mkdir(filepath.Join(work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for given, want := range map[string]string{
		"up":                                  "up --dir=.lab",
		"up --detach --dir x":                 "up --dir=x --detach",
		"down --dir=x":                        "down --dir=x",
		"down --delete":                       "down --dir=.lab --delete",
		"status":                              "status --dir=.lab",
		"kubectl -- get nodes -o wide":        "kubectl --dir=.lab -- get nodes -o wide",
		"kubectl --dir x get nodes --dir y":   "kubectl --dir=x -- get nodes --dir y",
		"--dir x kubectl -- apply -f - --dir": "kubectl --dir=x -- apply -f - --dir",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Dir = work
		cmd.Env = append(os.Environ(), handOverVariable+"="+given, lab.BinaryVariable+"="+echo)
		output, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(output)); got != want {
			t.Errorf("%s: handed over %q, want %q", given, got, want)
		}
		if code := cmd.ProcessState.ExitCode(); code != 3 {
			t.Errorf("%s: exit code %d (%v), want the lab's own 3", given, code, err)
		}
	}
}

// TestLabIsNotBuiltForNothing: where no lab has ever run, that is said at once.
func TestLabIsNotBuiltForNothing(t *testing.T) {
	t.Setenv(lab.BinaryVariable, filepath.Join(t.TempDir(), "none")) // whoever looks for it fails in other words
	dir := filepath.Join(t.TempDir(), "lab")
	for _, args := range [][]string{{"status"}, {"kubectl", "--", "get", "nodes"}, {"restart", "etcd"}} {
		cmd := newLabCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{"--dir=" + dir}, args...))
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "no lab runs in "+dir) {
			t.Errorf("%v: %v, want that no lab runs there", args, err)
		}
	}
	cmd, told := newLabCommand(), &strings.Builder{}
	cmd.SetErr(told)
	cmd.SetArgs([]string{"--dir=" + dir, "down"})
	if err := cmd.Execute(); err != nil || !strings.Contains(told.String(), "none runs in "+dir) {
		t.Errorf("down: %v, told %q", err, told)
	}
}

func TestLabRefusesStrayArguments(t *testing.T) {
	for _, args := range [][]string{{"up", "now"}, {"down", "x"}, {"status", "x"}, {"build", "x"}, {"up", "--nope"},
		{"sideways"}} {
		cmd := newLabCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		if err := cmd.Execute(); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}

// TestLabSystemNamesWhatItCantRun: what the image stands for is looked for before any node is made.
func TestLabSystemNamesWhatItCantRun(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{
		"--controller=nowhere": "--controller: nowhere can't be run",
		"--controller=" + text: "--controller: " + text + " can't be run",
		"--nodes=9":            "--nodes: 9 is not one of 1 to 3",
	} {
		cmd := newLabCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"system", arg, "--dir", filepath.Join(t.TempDir(), "lab")})
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", arg, err, want)
		}
	}
}
