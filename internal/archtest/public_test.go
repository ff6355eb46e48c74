package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// The controller's executable runs in clusters, with power over their nodes: what only people's machines need is not in
// it.
func TestTheControllerLinksNoLab(t *testing.T) {
	banned := []string{"internal/lab", "internal/demo", "internal/e2e", "internal/chart", "internal/convert",
		"cloudprovider/aws/ec2sim", "cloudprovider/fake",
		"cloudprovider/conformance", "cmd/tenon"}
	found := 0
	for _, p := range packages(t) {
		name := rel(p.ImportPath)
		if name != "cmd/controller" && name != "operator" {
			continue
		}
		found++
		if len(p.Deps) < 100 {
			t.Errorf("go list knows only %d packages that %s links", len(p.Deps), name)
		}
		for _, dep := range p.Deps {
			for _, tree := range banned {
				if d := rel(dep); d == tree || strings.HasPrefix(d, tree+"/") {
					t.Errorf("%s links %s: only people's commands have use for it", name, d)
				}
			}
			if name == "operator" && (strings.HasPrefix(dep, "github.com/aws/") || strings.HasPrefix(rel(dep),
				"cloudprovider/aws") || strings.HasPrefix(rel(dep), "cloudprovider/kwok")) {
				t.Errorf("operator links %s: whoever runs another cloud should not carry it along", dep)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d of the two packages were found", found)
	}
}

// Package operator is public and made of what is not: other people could neither name nor make a value of an internal
// type, so none may be in what it shows.
func TestRule1TheOperatorShowsNothingInternal(t *testing.T) {
	shown := 0
	for _, p := range packages(t) {
		if rel(p.ImportPath) != "operator" {
			continue
		}
		eachFile(t, p.Dir, func(name string, file *ast.File) {
			for _, decl := range file.Decls {
				problems, n := leaks(decl, imports(t, file))
				shown += n
				for _, problem := range problems {
					t.Errorf("%s: %s", name, problem)
				}
			}
		})
	}
	if shown < 10 {
		t.Errorf("only %d exported names were found", shown)
	}
}

// TestLeaksAreSeen holds the test above to what it is for.
func TestLeaksAreSeen(t *testing.T) {
	const head = `package operator
import ("context"; "github.com/tenon-sh/tenon/api/karpenter/v1"; "github.com/tenon-sh/tenon/internal/loop"
	other "github.com/tenon-sh/tenon/internal/plan")
`
	for text, want := range map[string]string{
		"func Run(l *loop.Loop) {}":                               "Run shows loop.Loop",
		"func Run() map[string][]func(other.Plan) { return nil }": "Run shows other.Plan",
		"func Run(o *options) {}":                                 "Run shows options",
		"type T struct { Field loop.Loop }":                       "T shows loop.Loop",
		"type T struct { loop.Loop }":                             "T shows loop.Loop",
		"type T interface { Do(other.Plan) error }":               "T shows other.Plan",
		"type T = other.Plan":                                     "T shows other.Plan",
		"var V loop.Loop":                                         "V shows loop.Loop",
		"func (t *T) Do(p other.Plan) {}":                         "Do shows other.Plan",
		"func Run(ctx context.Context, p *v1.NodePool) error { var l loop.Loop; return nil }": "",
		"func run(l *loop.Loop) {}":                      "",
		"type t struct { Field loop.Loop }":              "",
		"type T struct { field loop.Loop; own options }": "",
		"func (t *t) Do(p other.Plan) {}":                "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", head+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		problems, _ := leaks(file.Decls[len(file.Decls)-1], imports(t, file))
		if got := strings.Join(problems, ", "); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// imports are the paths of a file's imports by the names that it has for them.
func imports(t *testing.T, file *ast.File) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		out[name] = path
	}
	return out
}

// leaks lists what an exported declaration shows of internal packages and of what its own package does not export.
// shown is how many exported names it declares.
func leaks(decl ast.Decl, imported map[string]string) (problems []string, shown int) {
	look := func(name string, node ast.Node) {
		if !ast.IsExported(name) || node == nil {
			return
		}
		shown++
		for _, leak := range leaked(node, imported) {
			problems = append(problems, name+" shows "+leak+", which other modules can't name")
		}
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			of := d.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if id, ok := of.(*ast.Ident); ok && !id.IsExported() {
				return nil, 0
			}
		}
		look(d.Name.Name, d.Type)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				look(s.Name.Name, s.Type)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if s.Type != nil {
						look(name.Name, s.Type)
					}
				}
			}
		}
	}
	return problems, shown
}

// leaked are the types of internal packages, and those that are not exported, in a type. Fields that are not exported
// show nothing.
func leaked(node ast.Node, imported map[string]string) []string {
	var out []string
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			hidden := len(n.Names) > 0
			for _, name := range n.Names {
				hidden = hidden && !name.IsExported()
			}
			if _, of := node.(*ast.StructType); of && hidden {
				return false
			}
			out = append(out, leaked(n.Type, imported)...)
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && strings.HasPrefix(imported[x.Name], module+"/internal/") {
				out = append(out, x.Name+"."+n.Sel.Name)
			}
			return false
		case *ast.Ident:
			if !n.IsExported() && !predeclared(n.Name) {
				out = append(out, n.Name)
			}
		}
		return true
	})
	return out
}

func predeclared(name string) bool {
	switch name {
	case "any", "bool", "byte", "error", "float32", "float64", "int", "int32", "int64", "rune", "string", "uint",
		"uint32", "uint64":
		return true
	}
	return false
}
