package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// kubernetesVersion is what the built parts say they are. A build from plain
// modules carries no version, and kubectl can't read the placeholder. It is the
// version of k8s.io/kubernetes in lab/go.mod; a test holds the two together.
const (
	kubernetesVersion = "v1.36.3"
	kubernetesMajor   = "1"
	kubernetesMinor   = "36"
)

// toolchain runs the go command in the lab's module, independent of what the
// user has set for other modules.
type toolchain struct {
	command string
	source  string
	// identity is the compiler's version and target.
	identity string
}

func newToolchain(ctx context.Context, source string) (toolchain, error) {
	command, err := exec.LookPath("go")
	if err != nil {
		return toolchain{}, fmt.Errorf("the lab is built with the go command (Go 1.26 or newer), which is not in "+
			"PATH: install Go, or set %s to a built lab", BinaryVariable)
	}
	t := toolchain{command: command, source: source}
	output, err := t.run(ctx, "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return toolchain{}, fmt.Errorf("ask the go command for its version: %w", describeExit(err))
	}
	t.identity = strings.Join(strings.Fields(string(output)), " ")
	return t, nil
}

func (t toolchain) run(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.command, args...)
	cmd.Dir = t.source
	// The lab runs here and now: a workspace, vendoring or cross compilation
	// that the user has set up for something else must not leak in.
	cmd.Env = append(os.Environ(),
		"GOWORK=off",
		"GOFLAGS="+keptFlags(os.Getenv("GOFLAGS")),
		"GOOS="+runtime.GOOS,
		"GOARCH="+runtime.GOARCH,
		"CGO_ENABLED=0",
	)
	return cmd
}

// keptFlags keeps of the user's GOFLAGS what concerns the module cache and not
// the build.
func keptFlags(goflags string) string {
	kept := slices.DeleteFunc(strings.Fields(goflags), func(flag string) bool {
		return strings.TrimLeft(flag, "-") != "modcacherw"
	})
	return strings.Join(kept, " ")
}

// buildFlags are the flags of go build, without the output.
func buildFlags() []string {
	linker := []string{"-s", "-w"}
	for _, variables := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, pair := range [][2]string{
			{"gitVersion", kubernetesVersion},
			{"gitMajor", kubernetesMajor},
			{"gitMinor", kubernetesMinor},
			{"gitCommit", "unknown"},
			{"gitTreeState", "clean"},
		} {
			linker = append(linker, "-X", variables+"."+pair[0]+"="+pair[1])
		}
	}
	return []string{"-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", strings.Join(linker, " ")}
}

// describeExit adds what a failed command said last to its exit status.
func describeExit(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	return fmt.Errorf("%w: %s", err, lastLine(string(exit.Stderr)))
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
