package version

import (
	"bytes"
	"encoding/json"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

func printed(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := NewCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{}, args...))
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestVersionSpeaksAsKubectlDoes(t *testing.T) {
	if got, want := string(printed(t)), "Client Version: "+Name()+"\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	for format, read := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) },
	} {
		var got map[string]map[string]string
		if err := read(printed(t, "-o", format), &got); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		fields := slices.Sorted(maps.Keys(got["clientVersion"]))
		want := []string{"buildDate", "compiler", "gitCommit", "gitTreeState", "gitVersion", "goVersion", "platform"}
		if !slices.Equal(fields, want) {
			t.Errorf("%s has the fields %v, want %v", format, fields, want)
		}
		if got := got["clientVersion"]["platform"]; got != runtime.GOOS+"/"+runtime.GOARCH {
			t.Errorf("%s: platform %s", format, got)
		}
	}
}

func TestVersionOfAnUnknownForm(t *testing.T) {
	cmd := NewCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"-o", "xml"})
	want := `--output "xml" is not known: use json or yaml, or leave it out`
	if err := cmd.Execute(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// What the linker was told is one whole: the clone in which a release is built again may stand elsewhere.
func TestTheLinkersWordGoesFirst(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-2026"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		{Key: "vcs.modified", Value: "true"},
	}}
	var built Info
	built.fill(info)
	want := Info{GitVersion: "v0.0.0-2026", GitCommit: "0123456789abcdef", GitTreeState: "dirty",
		BuildDate: "2026-01-02T03:04:05Z"}
	if built != want {
		t.Errorf("from the go command: %+v, want %+v", built, want)
	}
	linked := Info{GitVersion: "v1.2.3", GitCommit: "fedcba"}
	linked.fill(info)
	if want := (Info{GitVersion: "v1.2.3", GitCommit: "fedcba"}); linked != want {
		t.Errorf("from the linker: %+v, want %+v", linked, want)
	}
}

// A provider of somebody else's is a program of its own: its version and its history are not Tenon's.
func TestAProgramThatRequiresTenon(t *testing.T) {
	tenon := func(m debug.Module) []*debug.Module {
		m.Path = module
		return []*debug.Module{{Path: "example.com/x", Version: "v9.9.9"}, &m}
	}
	main := debug.Module{Path: "example.com/provider", Version: "v2.0.0"}
	theirs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}}
	for _, c := range []struct {
		tenon   debug.Module
		want    Info
		printed string
	}{
		{debug.Module{Version: "v1.2.3"}, Info{GitVersion: "v1.2.3"},
			"v2.0.0 (example.com/provider, with Tenon v1.2.3)"},
		{debug.Module{Version: "v0.0.0-20260102030405-fedcba987654"},
			Info{GitVersion: "v0.0.0-20260102030405-fedcba987654", GitCommit: "fedcba987654"},
			"v2.0.0 (example.com/provider, with Tenon v0.0.0-20260102030405-fedcba987654)"},
		{debug.Module{Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}},
			Info{GitVersion: "v1.0.1"}, "v2.0.0 (example.com/provider, with Tenon v1.0.1)"},
		{debug.Module{Version: "v1.0.0", Replace: &debug.Module{Path: "../tenon"}}, Info{},
			"v2.0.0 (example.com/provider, with Tenon )"},
	} {
		var got Info
		got.fill(&debug.BuildInfo{Main: main, Deps: tenon(c.tenon), Settings: theirs})
		c.want.Program, c.want.ProgramVersion = "example.com/provider", "v2.0.0"
		if got != c.want || got.String() != c.printed {
			t.Errorf("%+v, %q, want %+v, %q", got, got, c.want, c.printed)
		}
	}
	linked := Info{GitVersion: "v1.2.3"}
	linked.fill(&debug.BuildInfo{Main: main, Deps: tenon(debug.Module{Version: "v1.0.0"})})
	if want := (Info{Program: "example.com/provider", ProgramVersion: "v2.0.0", GitVersion: "v1.2.3"}); linked != want {
		t.Errorf("from the linker: %+v, want %+v", linked, want)
	}
}
