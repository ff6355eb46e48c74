package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// core are the packages in which a word has one meaning: a reader goes from one to the other.
func core(t *testing.T) []string {
	apart := []string{"internal/webhook", "internal/translate", "internal/validate", "internal/version",
		"internal/lease", "internal/provisioner", "internal/convert", "internal/logging", "internal/tolerant",
		"operator"}
	var out []string
	for _, p := range packages(t) {
		name := rel(p.ImportPath)
		family, _, known := familyOf(name)
		if known && !slices.Contains(apart, family) || isOfAWS(name) {
			out = append(out, name)
		}
	}
	return out
}

// isOfAWS reports whether a package is the provider of EC2 or one of the parts that its root was taken apart into.
func isOfAWS(name string) bool {
	parent, part := path.Split(name)
	return name == "cloudprovider/aws" || parent == "cloudprovider/aws/" &&
		slices.Contains([]string{"launch", "ownership", "template", "ratelimit", "offer"}, part)
}

// A type that is not exported and has the name of another one elsewhere is a word with two meanings.
func TestNoTypeNameStandsTwice(t *testing.T) {
	types := make(map[string][]string) // by package
	for _, dir := range core(t) {
		eachDeclaration(t, dir, func(d ast.Decl) {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				for _, spec := range d.Specs {
					if name := spec.(*ast.TypeSpec).Name.Name; !ast.IsExported(name) {
						types[dir] = append(types[dir], name)
					}
				}
			}
		})
	}
	if len(types) < 10 {
		t.Errorf("types were found in %d packages only", len(types))
	}
	for _, problem := range standTwice(types) {
		t.Error(problem)
	}
	if got := standTwice(map[string][]string{"a": {"ledger", "bin"}, "b": {"ledger"}}); len(got) != 1 ||
		!strings.Contains(got[0], "ledger") {
		t.Errorf("a type name in two packages is not seen: %q", got)
	}
}

// standTwice lists the names that more than one package has.
func standTwice(types map[string][]string) []string {
	where := make(map[string][]string)
	for dir, names := range types {
		for _, name := range names {
			where[name] = append(where[name], dir)
		}
	}
	var out []string
	for name, dirs := range where {
		if len(dirs) > 1 {
			slices.Sort(dirs)
			out = append(out, "type "+name+" stands in "+strings.Join(dirs, " and in ")+
				": each needs a name of its own")
		}
	}
	slices.Sort(out)
	return out
}

// Each row of the glossary has a word, a sentence and where it is in the code; what is named there exists, and no word
// comes twice.
func TestGlossaryNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, problems := glossaryProblems(t, string(text))
	if rows < 50 {
		t.Errorf("the glossary has only %d words", rows)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
	for row, want := range map[string]string{
		"| bin | A node. | `schedule.NoSuchBin` |":                     "schedule.NoSuchBin",
		"| bin | A node. | `nowhere.Bin` |":                            "nowhere.Bin",
		"| bin | A node. | `market.Bin.NoSuchField` |":                 "market.Bin.NoSuchField",
		"| bin | A node. |  |":                                         "where",
		"| bin | A | `market.Bin` |\n| bin | Another | `market.Bin` |": "twice",
	} {
		if _, problems := glossaryProblems(t, row); len(problems) != 1 || !strings.Contains(problems[0], want) {
			t.Errorf("%q: %q, want one problem with %q", row, problems, want)
		}
	}
}

func glossaryProblems(t *testing.T, text string) (rows int, problems []string) {
	t.Helper()
	dirs := core(t)
	seen, declared := make(map[string]bool), make(map[string]map[string]bool)
	span := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "word" {
			continue
		}
		rows++
		word := strings.TrimSpace(cells[1])
		if seen[word] {
			problems = append(problems, word+" comes twice")
		}
		seen[word] = true
		places := span.FindAllStringSubmatch(cells[3], -1)
		if len(places) == 0 {
			problems = append(problems, word+": say where it is in the code")
		}
		for _, place := range places {
			pkg, name, _ := strings.Cut(place[1], ".")
			isThere := false
			for _, dir := range dirs {
				if path.Base(dir) != pkg {
					continue
				}
				if declared[dir] == nil {
					declared[dir] = declaredIn(t, dir)
				}
				isThere = isThere || declared[dir][name]
			}
			if !isThere {
				problems = append(problems, word+": there is no "+place[1])
			}
		}
	}
	return rows, problems
}

// declaredIn are the names that a package declares outside of its tests: Name, or Type.member.
func declaredIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := make(map[string]bool)
	eachDeclaration(t, dir, func(d ast.Decl) {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if of := receiver(d); of != "" {
				out[of+"."+d.Name.Name] = true
			} else {
				out[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				(&source{declared: map[string]map[string]bool{}}).addSpec(spec, func(owner, name string) {
					if owner != "" {
						name = owner + "." + name
					}
					out[name] = true
				})
			}
		}
	})
	return out
}

// eachDeclaration calls do for all that a package declares outside of its tests.
func eachDeclaration(t *testing.T, dir string, do func(ast.Decl)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			do(d)
		}
	}
}
