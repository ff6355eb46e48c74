package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// repository is a fresh one with a single commit of a known time.
func repository(t *testing.T) (root string, run func(args ...string)) {
	t.Helper()
	root = t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "")
	run = func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-03-04T05:06:07Z",
			"GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	write(t, root, "one")
	run("add", "file")
	run("commit", "-qm", "one")
	return root, run
}

func write(t *testing.T, root, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, "file"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, root, given string) Source {
	t.Helper()
	s, err := Read(t.Context(), root, given)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVersionFollowsTheTag(t *testing.T) {
	root, run := repository(t)
	if s := read(t, root, ""); !regexp.MustCompile(`^v0\.0\.0-1-g[0-9a-f]{12}$`).MatchString(s.Version) {
		t.Errorf("without a tag: %s", s.Version)
	}
	run("tag", "v1.2.3")
	s := read(t, root, "")
	if s.Version != "v1.2.3" || s.Bare() != "1.2.3" || s.TreeState() != "clean" || len(s.Commit) != 40 {
		t.Errorf("at the tag: %+v", s)
	}
	if want := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC); !s.Time.Equal(want) {
		t.Errorf("time %v, want the commit's %v", s.Time, want)
	}
	write(t, root, "two")
	if s := read(t, root, ""); s.Version != "v1.2.3-dirty" || s.TreeState() != "dirty" {
		t.Errorf("with a changed file: %+v", s)
	}
	run("commit", "-qam", "two")
	if s := read(t, root, ""); !strings.HasPrefix(s.Version, "v1.2.3-1-g") {
		t.Errorf("one commit later: %s", s.Version)
	}
	if s := read(t, root, "v2.0.0-rc.1"); s.Version != "v2.0.0-rc.1" {
		t.Errorf("given: %s", s.Version)
	}
}

func TestWhatIsRefused(t *testing.T) {
	root, _ := repository(t)
	for _, bad := range []string{"1.2.3", "v1.2", "v1.2.3+build", "latest"} {
		if _, err := Read(t.Context(), root, bad); err == nil || !strings.Contains(err.Error(), "VERSION") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := Read(t.Context(), root, ""); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("%v", err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	if s := read(t, root, ""); s.Time.Format(time.RFC3339) != "1970-01-02T00:00:00Z" {
		t.Errorf("time %v", s.Time)
	}
}
