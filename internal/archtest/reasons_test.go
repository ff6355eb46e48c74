package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// mostWords is how many words a literal may have where decisions are made: codes, names and keys have no more.
const mostWords = 2

// Floors 0 to 2 decide, and say why as data: the words are in internal/render. Three kinds of text are left where they
// are, because nobody reads them in an event, a condition or a line of the log as the reason of a decision: what a
// panic says of a broken invariant, which is for whoever mends it; an error, which Go has words in and whoever parses
// an annotation returns; and an import's path or a field's tag.
func TestRule6DecisionsHaveNoWords(t *testing.T) {
	for _, p := range packages(t) {
		name := rel(p.ImportPath)
		if _, f, ok := familyOf(name); !ok || f > 2 || name == "internal/render" {
			continue
		}
		eachFile(t, p.Dir, func(path string, file *ast.File) {
			for _, text := range sentences(file) {
				t.Errorf("%s has the text %q: give a code of internal/reason, and internal/render the words", path,
					text)
			}
		})
	}
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
		import "a very long path"
		type T struct { A int `+"`tag: of many words`"+` }
		func f() error {
			panic(fmt.Sprintf("a broken %d invariant", 1))
			return errors.Join(errors.New("not a number"), fmt.Errorf("no number: %w", err))
		}
		func g() string { return "the pool " + name + " is being" + " deleted" + "%d %d %d" + "two words" }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := sentences(file); len(got) != 1 || got[0] != "the pool … is being deleted%d %d %dtwo words" {
		t.Errorf("found %q", got)
	}
}

// sentences are the texts of a file that have more than mostWords words, a sum of literals being one text.
func sentences(file *ast.File) []string {
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.CallExpr:
			switch called(n) {
			case "panic", "errors.New", "fmt.Errorf":
				return false
			}
		case *ast.BinaryExpr, *ast.BasicLit:
			if text, some := literal(n.(ast.Expr)); some {
				if countWords(text) > mostWords {
					out = append(out, text)
				}
				return false
			}
		}
		return true
	})
	return out
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// literal is the text of a literal or of a sum in which there are some, with "…" for what is not known.
func literal(e ast.Expr) (text string, some bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text, true
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, a := literal(e.X)
			right, b := literal(e.Y)
			return left + right, a || b
		}
	}
	return "…", false
}

// countWords counts what has a letter, the places for arguments aside.
func countWords(text string) int {
	count := 0
	for _, word := range strings.Fields(verbs().ReplaceAllString(text, "")) {
		if strings.ContainsFunc(word, unicode.IsLetter) {
			count++
		}
	}
	return count
}

func verbs() *regexp.Regexp { return regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`) }

// Each code of internal/reason has words, and each reason that is given has as many arguments as these have places.
func TestRule6ReasonsFitTheirWords(t *testing.T) {
	places := make(map[string]int)
	for _, p := range packages(t) {
		if rel(p.ImportPath) == "internal/render" {
			eachFile(t, p.Dir, func(_ string, file *ast.File) { countPlaces(file, places) })
		}
	}
	given := make(map[string]bool)
	for _, p := range packages(t) {
		if _, _, known := familyOf(rel(p.ImportPath)); !known {
			continue
		}
		eachFile(t, p.Dir, func(path string, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || called(call) != "reason.Of" || len(call.Args) == 0 {
					return true
				}
				code := codeOf(call.Args[0])
				if want, known := places[code]; known {
					given[code] = true
					if have := len(call.Args) - 1; have != want {
						t.Errorf("%s gives %s %d arguments, and its words have places for %d", path, code, have, want)
					}
				}
				return true
			})
		})
	}
	for _, code := range codes(t) {
		if _, known := places[code]; !known && code != "Nothing" && code != "Count" {
			t.Errorf("internal/render has no words for reason.%s", code)
		}
		delete(places, code)
	}
	if len(places) > 0 || len(given) < 100 {
		t.Errorf("words for what is no code: %v; %d codes are given", places, len(given))
	}
}

// countPlaces counts the places for arguments in the words of each code.
func countPlaces(file *ast.File, places map[string]int) {
	ast.Inspect(file, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok && codeOf(pair.Key) != "" {
			text, _ := literal(pair.Value) // a constant that is added has no places
			places[codeOf(pair.Key)] = len(verbs().FindAllString(strings.ReplaceAll(text, "%%", ""), -1))
		}
		return true
	})
}

// codeOf is the name of a code of internal/reason; empty if it is something else.
func codeOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "reason" {
			return e.Sel.Name
		}
	}
	return ""
}

// codes are the names of the codes, in order.
func codes(t *testing.T) []string {
	t.Helper()
	var out []string
	eachDeclaration(t, "internal/reason", func(d ast.Decl) {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, spec := range d.Specs {
				out = append(out, spec.(*ast.ValueSpec).Names[0].Name)
			}
		}
	})
	return out
}
