// Package compile builds Tenon's executables so that the same source gives the same bytes, on every machine.
package compile

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/release/internal/source"
)

// Toolchain is the Go compiler of a release. The go command fetches it if another one is installed: each compiler gives
// other bytes.
const Toolchain = "go1.26.8"

// The programs: what people use on their machines, and what runs in a cluster, without the lab, the demo and the
// simulated account.
const (
	Tenon      = "./cmd/tenon"
	Controller = "./cmd/controller"
)

// linked is the package whose variables the linker writes.
const linked = "github.com/tenon-sh/tenon/internal/version"

// Platform is an operating system and a processor, in Go's words.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Downloads are the platforms that people's machines have.
func Downloads() []Platform {
	var out []Platform
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			out = append(out, Platform{system, arch})
		}
	}
	return out
}

// Nodes are the platforms that the controller's pod runs on.
func Nodes() []Platform { return []Platform{{"linux", "amd64"}, {"linux", "arm64"}} }

// Build writes the executable of a program for a platform to a file.
func Build(ctx context.Context, s source.Source, program string, p Platform, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("finding the place of the executable: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", Args(s, program, file)...)
	cmd.Dir = s.Root
	cmd.Env = Environment(os.Environ(), p)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s for %s: %w", program, p, err)
	}
	return nil
}

// Args are those of the go command. Paths of the machine, symbols that only a debugger needs and the build's own id are
// left out; the state of the repository is told to the linker and not read by the go command, so that an archive
// without history gives the same.
func Args(s source.Source, program, file string) []string {
	flags := []string{"-s", "-w", "-buildid="}
	for _, field := range [][2]string{
		{"linkedVersion", s.Version}, {"linkedCommit", s.Commit}, {"linkedTreeState", s.TreeState()},
		{"linkedDate", s.Time.Format(time.RFC3339)},
	} {
		flags = append(flags, "-X", linked+"."+field[0]+"="+field[1])
	}
	return []string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", strings.Join(flags, " "),
		"-o", file, program}
}

// Environment takes from the machine's what does not change the bytes.
func Environment(machine []string, p Platform) []string {
	var out []string
	for _, variable := range machine {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case "GOFLAGS", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFIPS140", "GOTOOLCHAIN", "GOWORK",
			"CGO_ENABLED":
		default:
			out = append(out, variable)
		}
	}
	return append(out, "GOOS="+p.OS, "GOARCH="+p.Arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off",
		"GOTOOLCHAIN="+Toolchain,
		"GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=", "CGO_ENABLED=0")
}
