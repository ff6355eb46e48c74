package main

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
	root := newRootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(append([]string{"version"}, args...))
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestVersionSpeaksAsKubectlDoes(t *testing.T) {
	if got, want := string(printed(t)), "Client Version: "+version()+"\n"; got != want {
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
	root := newRootCommand()
	root.SetArgs([]string{"version", "-o", "xml"})
	want := `--output "xml" is not known: use json or yaml, or leave it out`
	if err := root.Execute(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// What the linker was told is one whole: the clone in which a release is built again may stand elsewhere.
func TestTheLinkersWordGoesFirst(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-2026"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		{Key: "vcs.modified", Value: "true"},
	}}
	var built buildVersion
	built.fill(info)
	want := buildVersion{GitVersion: "v0.0.0-2026", GitCommit: "0123456789abcdef", GitTreeState: "dirty", BuildDate: "2026-01-02T03:04:05Z"}
	if built != want {
		t.Errorf("from the go command: %+v, want %+v", built, want)
	}
	linked := buildVersion{GitVersion: "v1.2.3", GitCommit: "fedcba"}
	linked.fill(info)
	if want := (buildVersion{GitVersion: "v1.2.3", GitCommit: "fedcba"}); linked != want {
		t.Errorf("from the linker: %+v, want %+v", linked, want)
	}
}
