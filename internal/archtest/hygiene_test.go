package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// roles are those of charts/karpenter/rbac, by file.
func roles(t *testing.T) map[string][]rbacv1.ClusterRole {
	t.Helper()
	root := filepath.Join("..", "..", "charts", "karpenter", "rbac")
	out := map[string][]rbacv1.ClusterRole{}
	for _, pattern := range []string{"*.yaml", "optional/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, document := range strings.Split(string(text), "\n---\n") {
				var role rbacv1.ClusterRole
				if err := yaml.Unmarshal([]byte(document), &role); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				if len(role.Rules) > 0 {
					name, _ := filepath.Rel(root, file)
					out[name] = append(out[name], role)
				}
			}
		}
	}
	return out
}

// TestRolesAreNarrow: what the controller and people get is named, and what means power over nodes or pods stands
// apart. That the controller asks for all of it and for no more is tested on the lab (internal/e2e).
func TestRolesAreNarrow(t *testing.T) {
	reads := []string{"get", "list", "watch"}
	for file, list := range roles(t) {
		for _, role := range list {
			aggregated := false
			for label := range role.Labels {
				aggregated = aggregated || strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")
			}
			for _, rule := range role.Rules {
				if all := slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups); slices.Contains(all, "*") {
					t.Errorf("%s: role %s allows everything of something: %v", file, role.Name, rule)
				}
				if slices.Contains(rule.Resources, "pods/binding") && file != filepath.Join("optional",
					"placement-bind.yaml") {
					t.Errorf("%s: role %s may bind pods; only --placement=bind needs it", file, role.Name)
				}
				changes := slices.ContainsFunc(rule.Verbs, func(verb string) bool {
					return !slices.Contains(reads, verb)
				})
				if aggregated && (changes || slices.Contains(rule.APIGroups, "karpenter.k8s.aws")) {
					t.Errorf("%s: role %s is part of other roles and allows %v of %v: who may write user data is "+
						"root on nodes, who may read it sees its secrets", file, role.Name, rule.Verbs, rule.Resources)
				}
				if slices.Contains(rule.Verbs, "create") && slices.Contains(rule.Resources, "secrets") {
					t.Errorf("%s: role %s may create Secrets, and so tokens of every account there", file, role.Name)
				}
				lease := slices.Equal(rule.Resources, []string{"leases"})
				owners := !slices.ContainsFunc(rule.Resources, func(r string) bool {
					return !strings.HasSuffix(r, "/finalizers")
				})
				if slices.Contains(rule.Verbs, "update") && !lease && !owners {
					t.Errorf("%s: role %s may update %v; the controller patches everything but its lease", file,
						role.Name, rule.Resources)
				}
			}
		}
	}
}

// TestActionsArePinned: a tag of an action can be moved to other code, a commit can't.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", ".github", "workflows", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	uses := regexp.MustCompile(`uses:\s*(\S+)(.*)`)
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	version := regexp.MustCompile(`^ # v\d+(\.\d+)*$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := uses.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s uses no action", file)
		}
		for _, m := range found {
			if !pinned.MatchString(m[1]) || !version.MatchString(m[2]) {
				t.Errorf("%s: %q is not an action at a commit with its version in a remark", file, m[0])
			}
		}
	}
}

// TestLinesAreShort: no line of Go has more than 120 columns, where a tab counts four. Generated files are left out,
// and so is what can't be broken: markers for code generators and the compiler, fields with their tag, and lines with a
// word of 100 columns, such as a path, an address or a series of a metric.
func TestLinesAreShort(t *testing.T) {
	files := 0
	eachGoFile(t, func(file, text string) {
		files++
		for i, line := range strings.Split(text, "\n") {
			if tooLong(line) {
				t.Errorf("%s:%d has more than 120 columns; break it", file, i+1)
			}
		}
	})
	if files < 1000 {
		t.Errorf("there are only %d files", files)
	}
	word := strings.Repeat("x", 60)
	for line, want := range map[string]bool{
		"\t\t\t" + word + " " + word[:47]:                         false,
		"\t\t\t" + word + " " + word[:48]:                         true,
		word + " " + strings.Repeat("ü", 60):                      true,
		word + " " + strings.Repeat("ü", 59):                      false,
		"// https://example.com/" + word + word:                   false,
		"// +kubebuilder:validation:Pattern=" + word + " " + word: false,
		"//go:generate " + word + " " + word:                      false,
		"\t" + word + " " + word + " `json:\"a\"`":                false,
	} {
		if tooLong(line) != want {
			t.Errorf("%q: too long %v, want %v", line, !want, want)
		}
	}
}

func tooLong(line string) bool {
	if utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) <= 120 {
		return false
	}
	marker := strings.Contains(line, "// +kubebuilder:") || strings.Contains(line, "//go:")
	field := strings.Contains(line, " `json:") && strings.HasSuffix(line, "`")
	return !marker && !field && !slices.ContainsFunc(strings.Fields(line), func(word string) bool {
		return utf8.RuneCountInString(word) >= 100
	})
}

// eachGoFile calls do for every Go file of the repository that is not generated.
func eachGoFile(t *testing.T, do func(file, text string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(name, "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "zz_generated"):
			return nil
		}
		text, err := os.ReadFile(path)
		do(strings.TrimPrefix(path, root+string(filepath.Separator)), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTasksKeepTheirLog: who opens /dev/stderr by its name truncates the file to which it is redirected, and what was
// in it is lost.
func TestTasksKeepTheirLog(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, "/dev/stderr") || strings.Contains(line, "/dev/stdout") {
			t.Errorf("Makefile:%d opens its own output: use >&2, or print what was captured: %s", i+1, line)
		}
	}
}
