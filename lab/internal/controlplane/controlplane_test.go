package controlplane

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/lab/internal/labdir"
)

func newDir(t *testing.T) labdir.Dir {
	t.Helper()
	dir, err := labdir.At(filepath.Join(t.TempDir(), "lab"))
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Prepare(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFreePortsAreDistinctAndFree(t *testing.T) {
	p, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range []int{p.etcd, p.etcdPeer, p.apiServer, p.controllerManager, p.scheduler, p.kwok} {
		if seen[port] {
			t.Errorf("port %d twice", port)
		}
		seen[port] = true
		listener, err := net.Listen("tcp", hostPort(port))
		if err != nil {
			t.Errorf("port %d is not free: %v", port, err)
			continue
		}
		_ = listener.Close()
	}
}

func TestEveryPartListensOnLoopbackOnly(t *testing.T) {
	plan := newPlan(newDir(t), ports{1, 2, 3, 4, 5, 6})
	for _, p := range append([]part{plan.etcd, plan.apiServer, plan.controllerManager}, plan.clients...) {
		if !strings.Contains(p.url(), "://127.0.0.1:") {
			t.Errorf("%s is at %s", p.name, p.url())
		}
		bound := false
		for _, arg := range p.args {
			if strings.Contains(arg, "0.0.0.0") || strings.Contains(arg, "[::]") {
				t.Errorf("%s listens to the world: %s", p.name, arg)
			}
			name, value, _ := strings.Cut(arg, "=")
			switch name {
			case "--bind-address", "--listen", "--listen-client-urls":
				bound = strings.Contains(value, "127.0.0.1")
			}
		}
		if !bound {
			t.Errorf("%s is not bound to 127.0.0.1: %v", p.name, p.args)
		}
	}
}

func TestCredentialsKeepWhatMustOutliveARun(t *testing.T) {
	dir := newDir(t)
	first := writtenCredentials(t, dir, "https://127.0.0.1:1")
	second := writtenCredentials(t, dir, "https://127.0.0.1:2")
	for name, content := range first {
		kept := strings.HasPrefix(name, "pki/ca.") || strings.HasPrefix(name, "pki/front-proxy-ca.") ||
			strings.HasPrefix(name, "pki/service-account.")
		if same := bytes.Equal(content, second[name]); same != kept {
			t.Errorf("%s: kept %v, want %v", name, same, kept)
		}
	}
	if !bytes.Contains(second["kubeconfig"], []byte("https://127.0.0.1:2")) {
		t.Error("the kubeconfig does not name the new server")
	}
	if _, err := NewProbe(dir); err != nil {
		t.Error(err)
	}
}

func TestDamagedAuthorityIsReported(t *testing.T) {
	dir := newDir(t)
	writtenCredentials(t, dir, "https://127.0.0.1:1")
	if err := dir.Write([]byte("damaged"), "pki", "ca.crt"); err != nil {
		t.Fatal(err)
	}
	err := writeCredentials(dir, "https://127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), dir.Path("pki", "ca.crt")) {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func writtenCredentials(t *testing.T, dir labdir.Dir, server string) map[string][]byte {
	t.Helper()
	if err := writeCredentials(dir, server); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, pattern := range []string{"kubeconfig", "pki/*", "config/*"} {
		matches, err := filepath.Glob(dir.Path(pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range matches {
			content, err := os.ReadFile(match)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(dir.Path(), match)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = content
		}
	}
	if len(files) < 15 {
		t.Fatalf("only %d files were written", len(files))
	}
	return files
}
