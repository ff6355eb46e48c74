package observe

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// tellers are the packages that tell events, those below them included, or word them for this one to tell.
func tellers() []string {
	return []string{"internal/webhook",
		"internal/cluster", "internal/command", "internal/disrupt", "internal/ingest", "internal/lifecycle",
		"internal/loop",
		"internal/observe", "internal/observe/events", "internal/observe/state", "internal/plan",
		"internal/provisioner", "internal/schedule", "internal/validate",
		"cloudprovider/aws/interrupt", "cloudprovider/aws/nodeclass",
		"cloudprovider/aws/refresh"}
}

// reasonAt says where functions that tell an event take its reason.
func reasonAt() map[string]int {
	return map[string]int{"tell": 2, "write": 2, "claimFailed": 3, "Eventf": 3, "sayNow": 2, "Note": 0}
}

// source is what the source says about reasons.
type source struct {
	constants map[string]string // by name, and by package and name
	told      map[string]string // reason -> where it is told
	literals  map[string]bool   // every text constant
}

func readSource(t *testing.T) source {
	t.Helper()
	s := source{constants: map[string]string{}, told: map[string]string{}, literals: map[string]bool{}}
	var files []*ast.File
	fset := token.NewFileSet()
	for _, dir := range append(tellers(), "api/karpenter/v1", "api/aws/v1", "internal/actuate", "cloudprovider/aws",
		"cloudprovider/aws/fault", "operator") {
		names, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s has no files: %v", dir, err)
		}
		below, err := filepath.Glob(filepath.Join("..", "..", dir, "*", "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, below...)
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
			s.noteConstants(file)
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			s.noteReason(fset, file.Name.Name, n)
			return true
		})
	}
	return s
}

// noteConstants notes the text constants of a file.
func (s source) noteConstants(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					if text, ok := literal(n.Values[i]); ok {
						s.constants[file.Name.Name+"."+name.Name] = text
					}
				}
			}
		case *ast.BasicLit, *ast.BinaryExpr:
			if text, ok := literal(n.(ast.Expr)); ok {
				s.literals[text] = true
			}
		}
		return true
	})
}

// literal is the text of a string, which may stand on several lines.
func literal(e ast.Expr) (string, bool) {
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		left, okLeft := literal(sum.X)
		right, okRight := literal(sum.Y)
		return left + right, okLeft && okRight
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// value is the text of an expression, if it is a constant one.
func (s source) value(pkg string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := literal(e)
		return text
	case *ast.Ident:
		return s.constants[pkg+"."+e.Name]
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			return s.constants[of.Name+"."+e.Sel.Name]
		}
	case *ast.CallExpr: // string(reason)
		if len(e.Args) == 1 {
			return s.value(pkg, e.Args[0])
		}
	}
	return ""
}

// noteReason notes the reason that is told by a call, by a note, or by a variable that is called reason.
func (s source) noteReason(fset *token.FileSet, pkg string, n ast.Node) {
	var reasons []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
			if at, ok := reasonAt()[sel.Sel.Name]; ok && at < len(n.Args) {
				reasons = append(reasons, n.Args[at])
			}
		}
	case *ast.CompositeLit:
		if sel, ok := n.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Note" {
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && isNamed(kv.Key, "Reason") {
					reasons = append(reasons, kv.Value)
				}
			}
		}
	case *ast.AssignStmt:
		if pkg != "observe" && pkg != "interrupt" {
			return
		}
		for i, left := range n.Lhs {
			if isNamed(left, "reason") && i < len(n.Rhs) {
				reasons = append(reasons, n.Rhs[i])
			}
		}
	}
	for _, e := range reasons {
		if text := s.value(pkg, e); regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`).MatchString(text) {
			s.told[text] = fset.Position(n.Pos()).String()
		}
	}
}

func isNamed(e ast.Expr, name string) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == name
	case *ast.SelectorExpr:
		return e.Sel.Name == name
	}
	return false
}

// TestDocumentNamesEveryEvent compares the page with the source, in both directions.
func TestDocumentNamesEveryEvent(t *testing.T) {
	s := readSource(t)
	if len(s.told) < 45 {
		t.Fatalf("only %d reasons were found in the source: %v", len(s.told), s.told)
	}
	documented := map[string]bool{}
	for _, row := range strings.Split(document(t, "reference", "events.md"), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 5 {
			continue
		}
		if kind := strings.TrimSpace(cells[2]); kind != "Normal" && kind != "Warning" {
			continue
		}
		for _, m := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[1], -1) {
			documented[m[1]] = true
		}
	}
	for reason, where := range s.told {
		if !documented[reason] {
			t.Errorf("%s tells %s, which docs/reference/events.md does not have", where, reason)
		}
	}
	for reason := range documented {
		if !s.literals[reason] {
			t.Errorf("docs/reference/events.md has %s, which nothing tells", reason)
		}
	}
}

// elsewhere are names on the pages for troubles that are not ours.
func elsewhere() map[string]string {
	return map[string]string{
		"HearOfInterruptions": "a statement of the controller's policy", "NameOwnInstances": "another",
		"ReadPrices":     "another",
		"StaticCapacity": "a gate", "Custom": "an AMI family", "Never": "a value", "Lt": "an operator",
		"Gt":          "an operator",
		"NodeOverlay": "a kind that is not there", "CapacityBuffer": "a kind that is not there",
	}
}

// TestPagesForTroublesNameWhatThereIs looks for events, conditions, reasons, metrics and log lines that somebody would
// look for in vain.
func TestPagesForTroublesNameWhatThereIs(t *testing.T) {
	s, metrics := readSource(t), registered(t)
	for _, page := range [][]string{{"tasks", "troubleshooting.md"}, {"tasks", "migrate.md"},
		{"reference", "limits.md"}, {"faq.md"}} {
		names := 0
		for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(document(t, page...), -1) {
			name := m[1]
			switch {
			case regexp.MustCompile(`^(karpenter|tenon)_[a-z_]+[a-z]$`).MatchString(name):
				names++
				if metrics[name] == "" {
					t.Errorf("%v names the metric %s, which is not registered", page, name)
				}
			case regexp.MustCompile(`^(tenon\.sh/)?[A-Z][a-z]+[A-Za-z]*$`).MatchString(name):
				names++
				if !s.literals[name] && elsewhere()[name] == "" {
					t.Errorf("%v names %s, which the source does not have", page, name)
				}
			}
		}
		if names < 1 {
			t.Errorf("%v names nothing", page)
		}
	}
	for _, line := range []string{
		"this setting has no effect", "planned new nodes",
		"WARNING: the cluster has %ses, but nodes come from another cloud",
		"the API server has no way to the webhook, so v1beta1 can't be used; give --karpenter-service or --webhook-url",
		"requests for v1beta1 may fail; trying again", "objects of older versions could not all be stored anew; " +
			"trying again",
		"an object could not be converted", "the API server refuses what an older object means; trying again",
		"the cluster does not serve a kind of an older generation; install its CustomResourceDefinition " +
			"and restart to use it",
	} {
		if !s.literals[line] {
			t.Errorf("the log has no line %q", line)
		}
	}
}
