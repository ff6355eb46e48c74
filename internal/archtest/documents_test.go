package archtest

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// inside are names under tenon.sh/ that never leave the process.
func inside() map[string]string {
	return map[string]string{
		"tenon.sh/too-long": "marks an object in memory of which something was dropped",
	}
}

// TestAdditionsAreDocumented compares the names under tenon.sh/ in the source with the page that promises to list them
// all.
func TestAdditionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "additions.md"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^tenon\.sh/[A-Za-z][A-Za-z0-9-]*$`)
	used := map[string]string{}
	for _, p := range packages(t) {
		if strings.Contains(p.ImportPath, "/ec2sim") {
			continue
		}
		eachFile(t, p.Dir, func(file string, parsed *ast.File) {
			ast.Inspect(parsed, func(n ast.Node) bool {
				if value := ownName(n); name.MatchString(value) {
					used[value] = file
				}
				return true
			})
		})
	}
	if len(used) < 30 {
		t.Fatalf("only %d names under tenon.sh/ were found: %v", len(used), used)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`(tenon\\.sh/[A-Za-z][A-Za-z0-9-]*)\\*?`").FindAllStringSubmatch(string(text),
		-1) {
		documented[m[1]] = true
	}
	for value, file := range used {
		// the rest of the name is made elsewhere
		stem := strings.HasSuffix(value, "-") && strings.Contains(string(text), "`"+value)
		if inside()[value] == "" && !documented[value] && !stem {
			t.Errorf("%s uses %s, which docs/reference/additions.md does not have", file, value)
		}
	}
	for value := range documented {
		// Names that are made of parts are found by their beginning.
		begins := false
		for other := range used {
			begins = begins || strings.HasSuffix(other, "-") && strings.HasPrefix(value, other)
		}
		if used[value] == "" && !begins && !regexp.MustCompile(`-\d+$`).MatchString(value) {
			t.Errorf("docs/reference/additions.md has %s, which nothing uses", value)
		}
	}
}

// ownName is the text of a literal, or of a sum of our prefix and a literal.
func ownName(n ast.Node) string {
	prefix := ""
	if sum, ok := n.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		if of, ok := sum.X.(*ast.Ident); !ok || of.Name != "ourPrefix" {
			return ""
		}
		prefix, n = "tenon.sh/", sum.Y
	}
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return prefix + value
}

// TestLinksLeadSomewhere follows the links between the documents, with their anchors.
func TestLinksLeadSomewhere(t *testing.T) {
	root := filepath.Join("..", "..")
	anchors := map[string]map[string]bool{}
	links := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).
			FindAllStringSubmatch(withoutSpans(withoutCode(string(text))), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				target = path
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
				continue
			}
			if anchor == "" {
				continue
			}
			if anchors[target] == nil {
				anchors[target] = headings(t, target)
			}
			if !anchors[target][anchor] {
				t.Errorf("%s links to %s, which has no such heading", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// withoutSpans leaves out code in the middle of a line; withoutCode leaves out blocks of it.
func withoutSpans(text string) string {
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "")
}

func withoutCode(text string) string {
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")
	return regexp.MustCompile("(?m)^(    |\t).*$").ReplaceAllString(text, "")
}

// headings are the anchors of a document's headings, made as GitHub makes them.
func headings(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(withoutCode(string(text)), -1) {
		anchor := strings.ToLower(m[1])
		anchor = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(anchor, "$1")
		anchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`).ReplaceAllString(anchor, "")
		out[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return out
}
