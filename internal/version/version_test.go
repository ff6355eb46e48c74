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
