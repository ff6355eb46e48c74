// Package helm runs the real Helm, which it builds from the module charts/helm, for the tests of the charts. It stands
// beside the building and touches a folder of its own for Helm's files.
package helm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Helm is a built Helm.
type Helm struct {
	// Root is the repository's folder.
	Root string
	// Home is the folder for Helm's own files.
	Home string
	// Kubeconfig leads to the cluster; empty for none.
	Kubeconfig string

	built sync.Once
	path  string
	err   error
}

// Chart is the folder of a chart.
func (h *Helm) Chart(name string) string { return filepath.Join(h.Root, "charts", name) }

// Path is where the built Helm is.
func (h *Helm) Path() (string, error) {
	h.built.Do(h.build)
	return h.path, h.err
}

// Run runs Helm and returns what it printed and what it complained about.
func (h *Helm) Run(ctx context.Context, args ...string) (out, complaints string, err error) {
	path, err := h.Path()
	if err != nil {
		return "", "", err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.Kubeconfig, "HELM_CACHE_HOME="+h.Home, "HELM_CONFIG_HOME="+h.Home,
		"HELM_DATA_HOME="+h.Home)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var lines []string
	for _, line := range strings.Split(stderr.String(), "\n") {
		if !strings.Contains(line, "found symbolic link") { // the chart's definitions are those of karpenter-crd
			lines = append(lines, line)
		}
	}
	return stdout.String(), strings.Join(lines, "\n"), err
}

// build has the go command build Helm, or find that it has.
func (h *Helm) build() {
	cmd := exec.Command("go", "-C", filepath.Join(h.Root, "charts", "helm"), "tool", "-n", "helm")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		h.err = fmt.Errorf("building Helm: %w: %s", err, complaints.String())
	}
	h.path = strings.TrimSpace(string(out))
}
