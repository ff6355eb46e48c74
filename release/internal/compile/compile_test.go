package compile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/release/internal/source"
)

func TestTheMachineDoesNotChangeTheBytes(t *testing.T) {
	mine := []string{"PATH=/bin", "HOME=/home/me", "GOFLAGS=-race", "GOAMD64=v4", "GOEXPERIMENT=x", "CGO_ENABLED=1", "GOWORK=/w"}
	env := Environment(mine, Platform{"linux", "arm64"})
	if !slices.Contains(env, "PATH=/bin") || !slices.Contains(env, "HOME=/home/me") {
		t.Errorf("the compiler can't be found: %v", env)
	}
	for _, want := range []string{"GOFLAGS=", "GOAMD64=v1", "GOEXPERIMENT=", "CGO_ENABLED=0", "GOWORK=off", "GOARCH=arm64"} {
		name, _, _ := strings.Cut(want, "=")
		found := slices.DeleteFunc(slices.Clone(env), func(v string) bool { return !strings.HasPrefix(v, name+"=") })
		if !slices.Equal(found, []string{want}) {
			t.Errorf("%s is %v, want %s alone", name, found, want)
		}
	}
}

func TestArgs(t *testing.T) {
	s := source.Source{Version: "v1.2.3", Commit: "abc", Time: time.Unix(0, 0).UTC()}
	got := Args(s, "/out/tenon", NoLab)
	for _, want := range []string{"-trimpath", "-buildvcs=false", "nolab", "/out/tenon"} {
		if !slices.Contains(got, want) {
			t.Errorf("%v lacks %s", got, want)
		}
	}
	linked := got[slices.Index(got, "-ldflags")+1]
	for _, want := range []string{"main.linkedVersion=v1.2.3", "main.linkedCommit=abc", "main.linkedTreeState=clean", "main.linkedDate=1970-01-01T00:00:00Z"} {
		if !strings.Contains(linked, want) {
			t.Errorf("%s lacks %s", linked, want)
		}
	}
}

// What the linker writes to has to be there: the linker says nothing about a variable that is not.
func TestTheLinkersVariablesExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "cmd", "tenon", "version.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range Args(source.Source{}, "x") {
		for field := range strings.FieldsSeq(arg) {
			if name, _, ok := strings.Cut(field, "="); ok && strings.HasPrefix(name, "main.") {
				if name = strings.TrimPrefix(name, "main."); !strings.Contains(string(text), name+",") && !strings.Contains(string(text), name+" string") {
					t.Errorf("cmd/tenon/version.go has no variable %s", name)
				}
			}
		}
	}
}
