package contestant

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTenonIsTold(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Tenon("/bin/tenon", folder, "/types.json")
	if err != nil {
		t.Fatal(err)
	}
	got := c.command("/kubeconfig", 7, 8)
	for _, want := range []string{"--kubeconfig=/kubeconfig", "--bind-address=127.0.0.1", "--metrics-port=7",
		"--health-probe-port=8", "--disable-leader-election", "--instance-types-file-path=/types.json"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
}

func TestTenonNeedsItsDefinitions(t *testing.T) {
	if _, err := Tenon("/bin/tenon", t.TempDir(), "/types.json"); err == nil || !strings.Contains(err.Error(),
		"run in the folder bench") {
		t.Errorf("got %v", err)
	}
}

func TestPeerIsTold(t *testing.T) {
	c := Peer("/bin/peer", Module{Dir: "/cache/peer"})
	got := c.env("/kubeconfig", 7, 8)
	for _, want := range []string{"KUBECONFIG=/kubeconfig", "METRICS_PORT=7", "HEALTH_PROBE_PORT=8",
		"DISABLE_LEADER_ELECTION=true",
		"SYSTEM_NAMESPACE=kube-system"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	if want := []string{"/cache/peer/pkg/apis/crds", "/cache/peer/kwok/apis/crds"}; !slices.Equal(c.CRDs, want) {
		t.Errorf("definitions from %v; want %v", c.CRDs, want)
	}
}

// A contestant that is elected has flags of its own; the one that it was made from has none.
func TestElected(t *testing.T) {
	alone := Peer("/bin/peer", Module{Dir: "/cache/peer"})
	if got, want := alone.Elected("kube-system").flags, []string{"--disable-leader-election=false",
		"--leader-election-namespace=kube-system"}; !slices.Equal(got, want) {
		t.Errorf("flags %v, want %v", got, want)
	}
	if len(alone.flags) > 0 {
		t.Errorf("the one that is not elected has the flags %v", alone.flags)
	}
}

func TestFindPeerNeedsThePin(t *testing.T) {
	if _, err := FindPeer(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "no go.mod in") {
		t.Errorf("got %v", err)
	}
}

// The pin is the only place that names the peer's version; it must hold exactly one.
func TestPinNamesThePeer(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "peer", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), "\ntool "+peerPackage+"\n") || !strings.Contains(string(content),
		peerModule+" v") {
		t.Errorf("peer/go.mod does not pin %s", peerPackage)
	}
}
