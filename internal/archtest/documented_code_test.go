package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// source is what the repository's own code declares and says.
type source struct {
	files map[string]bool // paths below the root, folders among them
	// by file: the names of functions, methods, types, fields, constants and variables
	declared map[string]map[string]bool
	members  map[string]bool // "Type.member", "package.Name", "package.Type.member"
	// every name that is declared somewhere or used of another package, and words that are texts of the code
	names map[string]bool
}

// TestDocumentsNameWhatExists resolves each file and each name of code in the pages that walk through the code.
func TestDocumentsNameWhatExists(t *testing.T) {
	s := readSource(t)
	for _, page := range []string{"docs/tour.md", "ARCHITECTURE.md", "docs/concepts/*.md", "CONTRIBUTING.md"} {
		matches, err := filepath.Glob(filepath.Join("..", "..", page))
		if err != nil || len(matches) == 0 {
			t.Errorf("%s: no such page (%v)", page, err)
		}
		for _, file := range matches {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			walks := !strings.Contains(file, "concepts")
			for _, problem := range s.unknown(string(text), walks) {
				t.Errorf("%s: %s", file, problem)
			}
		}
	}
}

// TestUnknownNamesAreSeen holds the test above to what it is for.
func TestUnknownNamesAreSeen(t *testing.T) {
	s := readSource(t)
	for text, want := range map[string]string{
		"see `nowhere.go`":                                "nowhere.go",
		"see `internal/nowhere/doc.go`":                   "internal/nowhere/doc.go",
		"`plan.Nothing` decides":                          "plan.Nothing",
		"`Plan.nothing` decides":                          "Plan.nothing",
		"`Make` (`plan/check.go`) decides":                "Make",
		"`nothingAtAll` (`plan.go`) decides":              "nothingAtAll",
		"`plan.Make` (`plan.go`) and then `notEvenThere`": "`notEvenThere` is declared nowhere",
	} {
		if problems := s.unknown(text, true); len(problems) != 1 || !strings.Contains(problems[0], want) {
			t.Errorf("%q: %q, want one problem that names %s", text, problems, want)
		}
	}
	if problems := s.unknown("`plan.Make` (`plan/plan.go`) takes a `cluster.Snapshot`", true); len(problems) > 0 {
		t.Errorf("names that exist are called unknown: %q", problems)
	}
}

// unknown lists the files and names in a text that the source does not have. A page that walks through the code names
// nothing but code in code style; other pages name fields of manifests, flags and metrics, too.
func (s *source) unknown(text string, walks bool) []string {
	var out []string
	text = withoutCode(text)
	goFile := regexp.MustCompile(`^[A-Za-z0-9_/.-]+\.go$`)
	qualified := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z][A-Za-z0-9]*){1,2}$`)
	identifier := regexp.MustCompile(`^[A-Za-z]*[a-z][A-Za-z0-9]*$`)
	say := func(span, what string) { out = append(out, "`"+span+"` "+what) }
	for _, m := range regexp.MustCompile("`([^`\n]+)`( \\(`([^`\n]+\\.go)`\\))?").FindAllStringSubmatch(text, -1) {
		span, file := m[1], m[3]
		if file != "" && !s.hasFile(file) {
			say(file, "is no file")
			continue
		}
		switch {
		case goFile.MatchString(span):
			if !s.hasFile(span) {
				say(span, "is no file")
			}
		case walks && qualified.MatchString(span) && s.mayBeCode(span):
			if !s.members[span] {
				say(span, "is declared nowhere")
			} else if file != "" && !s.declares(file, last(span)) {
				say(span, "is not declared in "+file)
			}
		case identifier.MatchString(span):
			if file != "" && !s.declares(file, span) {
				say(span, "is not declared in "+file)
			} else if file == "" && walks && !s.names[span] {
				say(span, "is declared nowhere")
			}
		}
	}
	return out
}

// hasFile tells whether a path, or the end of one, is a file.
func (s *source) hasFile(path string) bool {
	for file := range s.files {
		if file == path || strings.HasSuffix(file, "/"+path) {
			return true
		}
	}
	return false
}

// declares tells whether a file of this path, or with this end of a path, declares a name.
func (s *source) declares(path, name string) bool {
	for file, names := range s.declared {
		if (file == path || strings.HasSuffix(file, "/"+path)) && names[name] {
			return true
		}
	}
	return false
}

// mayBeCode tells whether a name with dots begins with one of our packages or types.
func (s *source) mayBeCode(span string) bool {
	head, _, _ := strings.Cut(span, ".")
	return s.members[head]
}

func last(span string) string { return span[strings.LastIndex(span, ".")+1:] }

func readSource(t *testing.T) *source {
	t.Helper()
	root := filepath.Join("..", "..")
	s := &source{files: map[string]bool{}, declared: map[string]map[string]bool{}, members: map[string]bool{},
		names: map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			s.names[d.Name()] = true
			return nil
		}
		s.files[filepath.ToSlash(name)] = true
		if strings.HasSuffix(path, ".go") {
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			s.add(filepath.ToSlash(name), parsed)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.declared) < 500 {
		t.Fatalf("only %d files of code were found", len(s.declared))
	}
	return s
}

// add notes what a file declares.
func (s *source) add(file string, parsed *ast.File) {
	pkg := parsed.Name.Name
	jsonName := regexp.MustCompile(`^"([A-Za-z]+)"$|json:"([A-Za-z]+)`)
	s.members[pkg], s.names[pkg] = true, true
	here := map[string]bool{}
	s.declared[file] = here
	note := func(owner, name string) {
		here[name], s.names[name] = true, true
		if owner == "" {
			s.members[name], s.members[pkg+"."+name] = true, true
			return
		}
		s.members[owner+"."+name], s.members[pkg+"."+owner+"."+name] = true, true
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if used, ok := n.(*ast.SelectorExpr); ok {
			s.names[used.Sel.Name] = true
		}
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			for _, m := range jsonName.FindAllStringSubmatch(lit.Value, -1) {
				s.names[m[1]+m[2]] = true
			}
		}
		return true
	})
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			note(receiver(d), d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s.addSpec(spec, note)
			}
		}
	}
}

// addSpec notes what one declaration of types, constants or variables declares.
func (s *source) addSpec(spec ast.Spec, note func(owner, name string)) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			note("", name.Name)
		}
	case *ast.TypeSpec:
		note("", spec.Name.Name)
		var fields *ast.FieldList
		switch of := spec.Type.(type) {
		case *ast.StructType:
			fields = of.Fields
		case *ast.InterfaceType:
			fields = of.Methods
		default:
			return
		}
		for _, field := range fields.List {
			for _, name := range field.Names {
				note(spec.Name.Name, name.Name)
			}
		}
	}
}

// receiver is the name of the type whose method a function is, and empty for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
