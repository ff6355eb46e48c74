package contestant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	peerModule  = "sigs.k8s.io/karpenter"
	peerPackage = peerModule + "/kwok"
	// buildPatience is enough for a cold build on a busy machine with two cores.
	buildPatience = 45 * time.Minute
)

// Module is the peer's source in the module cache.
type Module struct {
	Version string
	Dir     string
	// pin is the folder of the Go module that names the peer's version.
	pin string
}

// FindPeer downloads the peer's source, of the version that the module in folder pin names.
func FindPeer(ctx context.Context, pin string) (Module, error) {
	if _, err := os.Stat(filepath.Join(pin, "go.mod")); err != nil {
		return Module{}, fmt.Errorf("no go.mod in %s, which names the peer's version: run in the folder bench of a "+
			"clone", pin)
	}
	output, err := goCommand(ctx, pin, io.Discard, "mod", "download", "-json", peerModule)
	if err != nil {
		return Module{}, fmt.Errorf("download the peer %s: %w", peerModule, err)
	}
	m := Module{pin: pin}
	if err := json.Unmarshal(output, &m); err != nil || m.Dir == "" {
		return Module{}, fmt.Errorf("download the peer %s: the go command gave no folder (%w)", peerModule, err)
	}
	return m, nil
}

// InstanceTypes is the file with the instance types of the peer's simulated cloud.
func (m Module) InstanceTypes() string { return m.path("kwok", "cloudprovider", "instance_types.json") }

func (m Module) path(parts ...string) string {
	return filepath.Join(append([]string{m.Dir}, parts...)...)
}

// Build makes the peer's executable at path. Afterwards that takes seconds, because the go command keeps what it built.
func (m Module) Build(ctx context.Context, path string, progress io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, buildPatience, fmt.Errorf("not done after %s", buildPatience))
	defer cancel()
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find the place for the peer's executable: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of the peer's executable: %w", err)
	}
	if _, err := goCommand(ctx, m.pin, progress, "build", "-buildvcs=false", "-o", path, peerPackage); err != nil {
		return fmt.Errorf("build the peer %s %s: %w", peerPackage, m.Version, err)
	}
	return nil
}

// goCommand runs the go command in the module of the pin. The peer asks for a compiler that may be newer than the one
// here; GOTOOLCHAIN=auto lets the go command fetch the one that the pin names, whatever the user has set.
func goCommand(ctx context.Context, folder string, progress io.Writer, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=auto", "GOWORK=off", "GOFLAGS=", "GOOS=", "GOARCH=")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = io.MultiWriter(progress, &stderr)
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("the go command is not in PATH: install Go")
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("%w: %s", err, lastLine(stderr.String()))
	}
	return stdout.Bytes(), nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
