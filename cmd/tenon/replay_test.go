package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/replay"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// replayed runs the command on a case.
func replayed(t *testing.T, c *replay.Case) (string, error) {
	t.Helper()
	path, err := (&replay.Folder{Path: t.TempDir(), Files: 1, Bytes: 1 << 20}).Save(c)
	if err != nil {
		t.Fatal(err)
	}
	return runReplayed(path)
}

func runReplayed(path string) (string, error) {
	var out bytes.Buffer
	cmd, _ := newRootCommand()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"replay", path})
	err := cmd.Execute()
	return out.String(), err
}

func onePod(class *cluster.PodClass) *cluster.Snapshot {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return (&cluster.Snapshot{Now: now, Names: &resource.Names{}, Pods: []*cluster.Pod{
		{UID: "p", Namespace: "default", Name: "web", Class: class, Unschedulable: true,
			UnschedulableSince: now.Add(-time.Minute)}}}).Seal()
}

func TestReplay(t *testing.T) {
	class := &cluster.PodClass{Key: "c", Terms: []require.Set{nil}}
	out, err := replayed(t, &replay.Case{Engine: "v1.2.3", Step: replay.Make, Snapshot: onePod(class)})
	if err != nil || !strings.Contains(out, "make of 2030-01-01T00:00:00Z, written by version v1.2.3\n1 pods (1 "+
		"without a place)") ||
		!strings.Contains(out, "default/web has no place: ") {
		t.Errorf("got %v and\n%s", err, out)
	}
	if out, err := replayed(t, &replay.Case{Step: replay.Search, Snapshot: onePod(class)}); err != nil ||
		!strings.Contains(out, "has found 0 moves") {
		t.Errorf("a search: got %v and\n%s", err, out)
	}
	// A node that waits for a resource without a number is what no cluster has; here it stands for any mistake.
	broken := onePod(class)
	broken.Nodes = []*cluster.Node{{Name: "n", UID: "u", ProviderID: "x://n", Ready: true, Finalized: true}}
	broken.Claims = []*cluster.Claim{{Name: "n", UID: "c", ProviderID: "x://n", NodeName: "n", Finalized: true,
		AwaitedResources: []int{resource.Size},
		Conditions: []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}, {Type: cluster.Registered,
			Status: cluster.True}}}}
	out, err = replayed(t, &replay.Case{Step: replay.Make, Snapshot: broken.Seal(), Panic: "index out of range"})
	if err == nil || !strings.Contains(out, "the planner had failed: index out of range") || !strings.Contains(out,
		"the planner fails: runtime error: index out of range") ||
		!strings.Contains(out, "lifecycle") {
		t.Errorf("a snapshot on which the planner fails: got %v and\n%s", err, out)
	}
}

func TestReplayOfWhatIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := runReplayed(path); err == nil || out != "" || !strings.Contains(err.Error(), "this is none") {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := runReplayed(path + "y"); err == nil || !strings.Contains(err.Error(), "opening the snapshot file") {
		t.Errorf("no file: %v", err)
	}
}
