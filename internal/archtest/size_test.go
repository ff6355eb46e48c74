package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What a person can still read as one thing. A package may be larger if its doc.go says why, in a paragraph that begins
// with "Size:".
const (
	mostPackageLines   = 2500
	mostTypeMethods    = 25
	mostTypeFields     = 25
	mostFunctionLines  = 60
	mostFunctionBranch = 20 // cyclomatic complexity
)

// sizes are what has been measured, by what it is: "lines internal/plan", "methods internal/plan.Plan".
type sizes map[string]int

// limits are by the first word of a key in sizes.
func limits() map[string]int {
	return map[string]int{"lines": mostPackageLines, "methods": mostTypeMethods, "fields": mostTypeFields,
		"length": mostFunctionLines, "branches": mostFunctionBranch}
}

// TestNothingIsTooLarge compares all packages with the limits. What was larger when the test was written is listed in
// testdata/large.txt with the size that it may not exceed; a line goes as soon as it is no longer true.
func TestNothingIsTooLarge(t *testing.T) {
	found := sizes{}
	for _, p := range packages(t) {
		if name := rel(p.ImportPath); !strings.HasPrefix(name, "internal/sim") {
			found.measurePackage(t, name, p.Dir)
		}
	}
	if len(found) < 100 {
		t.Fatalf("only %d sizes were measured", len(found))
	}
	listed := readLarge(t)
	limit := limits()
	for _, key := range slices.Sorted(maps.Keys(found)) {
		kind := strings.Fields(key)[0]
		most := limit[kind]
		old, isListed := listed[key]
		if kind == "lines" {
			old += old / 50 // a fault that is mended may take a few
		}
		switch size := found[key]; {
		case size > most && !isListed:
			t.Errorf("%s: %d, at most %d: take it apart", key, size, most)
		case size > most && size > old:
			t.Errorf("%s: %d, and it was %d when it was listed in testdata/large.txt: take it apart", key, size, old)
		case size <= most && isListed:
			t.Errorf("%s: %d is within %d: take its line out of testdata/large.txt", key, size, most)
		}
	}
	for key := range listed {
		if _, ok := found[key]; !ok {
			t.Errorf("%s is in testdata/large.txt and does not exist: take the line out", key)
		}
	}
}

// readLarge reads testdata/large.txt: a size and what has it on each line.
func readLarge(t *testing.T) sizes {
	text, err := os.ReadFile(filepath.Join("testdata", "large.txt"))
	if err != nil {
		t.Fatal(err)
	}
	out := sizes{}
	for line := range strings.Lines(string(text)) {
		size, key, ok := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(size)
		if !ok || err != nil {
			t.Fatalf("testdata/large.txt: %q is not a size and what has it", line)
		}
		out[key] = n
	}
	return out
}

// measurePackage measures a package's files, tests and generated ones left out.
func (s sizes) measurePackage(t *testing.T, name, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	lines, saysWhy := 0, false
	for _, file := range files {
		base := filepath.Base(file)
		if strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "zz_generated") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
		saysWhy = saysWhy || base == "doc.go" && bytes.Contains(text, []byte("\n// Size: "))
		fs := token.NewFileSet()
		parsed, err := parser.ParseFile(fs, file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.measureFile(fs, name, parsed)
	}
	if !saysWhy {
		s["lines "+name] = lines
	}
}

// measureFile adds a file's types and functions.
func (s sizes) measureFile(fs *token.FileSet, name string, file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			full := name + "." + d.Name.Name
			if d.Recv != nil {
				receiver := receiverOf(d)
				s["methods "+name+"."+receiver]++
				full = name + "." + receiver + "." + d.Name.Name
			}
			s["length "+full] = fs.Position(d.End()).Line - fs.Position(d.Pos()).Line + 1
			s["branches "+full] = branches(d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok {
					if fields, ok := typ.Type.(*ast.StructType); ok {
						s["fields "+name+"."+typ.Name.Name] = fields.Fields.NumFields()
					}
				}
			}
		}
	}
}

// receiverOf is the name of the type that a method belongs to.
func receiverOf(d *ast.FuncDecl) string {
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name
		default:
			panic(fmt.Sprintf("a receiver of type %T", typ))
		}
	}
}

// branches is the cyclomatic complexity of a function: one more than the places where it can go two ways.
func branches(d *ast.FuncDecl) int {
	n := 1
	ast.Inspect(d, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func TestBranchesAreCounted(t *testing.T) {
	const text = `package p
func f(a, b bool, list []int) int {
	if a && b || len(list) == 0 {
		return 1
	}
	for _, x := range list {
		switch x {
		case 1, 2:
			return x
		default:
			return 0
		}
	}
	return 2
}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := branches(file.Decls[0].(*ast.FuncDecl)); got != 6 {
		t.Errorf("a function with an if of three conditions, a loop and one case has %d branches, want 6", got)
	}
}
