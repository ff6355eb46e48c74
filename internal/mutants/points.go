package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// mutant is one small fault that can be switched on.
type mutant struct {
	ID   int
	File string // from the repository's root
	Line int
	Func string
	Kind string // what is changed
	Text string // what it is changed in
	Copy int    // which of several that look the same
}

// key names a mutant in a way that outlives changes elsewhere in its file.
func (m *mutant) key() string {
	out := fmt.Sprintf("%s %s: %s: %s", m.File, m.Func, m.Kind, m.Text)
	if m.Copy > 0 {
		out += fmt.Sprintf(" #%d", m.Copy+1)
	}
	return out
}

// finder looks for places to change in one file, and writes the switches there.
type finder struct {
	fset *token.FileSet
	info *types.Info
	file *ast.File
	name string // from the repository's root
	src  []byte
	edit *editor
	next func() int
	out  []mutant
	// functions that the walk is in, innermost last.
	types []*ast.FuncType
	names []string
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }

// add notes a mutant and gives the expression that switches it on.
func (f *finder) add(n ast.Node, kind, text string) string {
	m := mutant{ID: f.next(), File: f.name, Line: f.fset.Position(n.Pos()).Line, Kind: kind,
		Text: oneLine(text), Func: "-"}
	if len(f.names) > 0 {
		m.Func = f.names[len(f.names)-1]
	}
	for i := range f.out {
		if o := &f.out[i]; o.Func == m.Func && o.Kind == m.Kind && o.Text == m.Text {
			m.Copy++
		}
	}
	f.out = append(f.out, m)
	return fmt.Sprintf("mutantIs(%d)", m.ID)
}

// longest is how much of a statement a mutant's name shows.
const longest = 90

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return text
}

// walk finds every place below a node.
func (f *finder) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				f.within(receiver(n)+n.Name.Name, n.Type, n.Body)
			}
			return false
		case *ast.FuncLit:
			name := "-"
			if len(f.names) > 0 {
				name = f.names[len(f.names)-1]
			}
			f.within(name, n.Type, n.Body)
			return false
		case *ast.GenDecl:
			return f.declaration(n)
		case *ast.IfStmt:
			f.negate(n.Cond)
		case *ast.BlockStmt:
			f.statements(n.List)
		case *ast.CaseClause:
			f.statements(n.Body)
			for _, e := range n.List {
				f.caseOf(e)
			}
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.IndexExpr: // an index that is wrong by one is found by the runtime
			f.walk(n.X)
			return false
		case *ast.ArrayType, *ast.SliceExpr:
			return false
		case *ast.BasicLit:
			f.number(n)
		}
		return true
	})
}

func (f *finder) within(name string, t *ast.FuncType, body *ast.BlockStmt) {
	f.names, f.types = append(f.names, name), append(f.types, t)
	f.walk(body)
	f.names, f.types = f.names[:len(f.names)-1], f.types[:len(f.types)-1]
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

// negate turns a condition round.
func (f *finder) negate(cond ast.Expr) {
	if isPlainBool(f.info, cond) {
		on := f.add(cond, "negate", f.text(cond))
		f.edit.wrap(f.offset(cond.Pos()), f.offset(cond.End()), "((", ") != "+on+")")
	}
}

// caseOf turns the condition of a case round, where a switch has no tag.
func (f *finder) caseOf(e ast.Expr) {
	if t := f.info.Types[e]; t.Value == nil && isPlainBool(f.info, e) {
		f.negate(e)
	}
}

func isPlainBool(info *types.Info, e ast.Expr) bool {
	t := info.Types[e].Type
	if t == nil {
		return false
	}
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

// binary shifts the boundary of a comparison, and takes away one side of a conjunction or disjunction.
func (f *finder) binary(b *ast.BinaryExpr) {
	from, to := f.offset(b.Pos()), f.offset(b.End())
	same := fmt.Sprintf("(%s) == (%s)", f.text(b.X), f.text(b.Y))
	switch b.Op {
	case token.LSS, token.GTR:
		on := f.add(b, "boundary", f.text(b))
		f.edit.wrap(from, to, "(", " || "+on+" && "+same+")")
	case token.LEQ, token.GEQ:
		on := f.add(b, "boundary", f.text(b))
		f.edit.wrap(from, to, "(", " && !("+on+" && "+same+"))")
	case token.LAND, token.LOR:
		for _, side := range []ast.Expr{b.X, b.Y} {
			if !isPlainBool(f.info, side) {
				continue
			}
			on := f.add(side, "drop operand", f.text(side)+" of "+f.text(b))
			if b.Op == token.LAND {
				f.edit.wrap(f.offset(side.Pos()), f.offset(side.End()), "((", ") || "+on+")")
			} else {
				f.edit.wrap(f.offset(side.Pos()), f.offset(side.End()), "((", ") && !"+on+")")
			}
		}
	}
}

// statements leaves out what has an effect, and gives back zero values.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if !isPanic(s.X) {
				f.drop(s, "drop call")
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE && !allBlank(s.Lhs) {
				f.drop(s, "drop assignment")
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt:
			f.drop(s, "drop statement")
		case *ast.BranchStmt:
			if s.Tok == token.CONTINUE || s.Tok == token.BREAK {
				f.drop(s, "drop statement")
			}
		case *ast.ReturnStmt:
			f.returns(s)
		}
	}
}

func (f *finder) drop(s ast.Stmt, kind string) {
	on := f.add(s, kind, f.text(s))
	f.edit.wrap(f.offset(s.Pos()), f.offset(s.End()), "if !"+on+" { ", " }")
}

func isPanic(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == "panic"
}

func allBlank(list []ast.Expr) bool {
	for _, e := range list {
		if id, ok := e.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}

// returns gives back nothing instead of something; of a single bool, the opposite.
func (f *finder) returns(s *ast.ReturnStmt) {
	if len(s.Results) == 0 || len(f.types) == 0 {
		return
	}
	if len(s.Results) == 1 && isPlainBool(f.info, s.Results[0]) {
		e := s.Results[0]
		on := f.add(s, "return the opposite", f.text(s))
		f.edit.wrap(f.offset(e.Pos()), f.offset(e.End()), "((", ") != "+on+")")
		return
	}
	if allZero(s.Results) {
		return
	}
	var zeros []string
	for _, field := range f.types[len(f.types)-1].Results.List {
		for range max(1, len(field.Names)) {
			zeros = append(zeros, "*new("+f.text(field.Type)+")")
		}
	}
	on := f.add(s, "return nothing", f.text(s))
	f.edit.wrap(f.offset(s.Pos()), f.offset(s.End()), "if "+on+" { return "+strings.Join(zeros, ", ")+" }; ", "")
}

func allZero(list []ast.Expr) bool {
	for _, e := range list {
		switch e := e.(type) {
		case *ast.Ident:
			if e.Name != "nil" && e.Name != "false" {
				return false
			}
		case *ast.BasicLit:
			if e.Value != "0" && e.Value != `""` {
				return false
			}
		case *ast.CompositeLit:
			if len(e.Elts) > 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// number makes a whole number one larger.
func (f *finder) number(lit *ast.BasicLit) {
	if lit.Kind != token.INT || len(f.names) == 0 {
		return
	}
	n, err := strconv.ParseInt(lit.Value, 0, 64)
	name, ok := f.typeName(f.info.Types[lit].Type)
	if err != nil || !ok {
		return
	}
	on := f.add(lit, "one more", lit.Value)
	id := strings.TrimSuffix(strings.TrimPrefix(on, "mutantIs("), ")")
	f.edit.wrap(f.offset(lit.Pos()), f.offset(lit.End()), fmt.Sprintf("mutantPick[%s](%s, ", name, id),
		fmt.Sprintf(", %d)", n+1))
}

// typeName is how the file calls a type, if it can.
func (f *finder) typeName(t types.Type) (string, bool) {
	switch t := t.(type) {
	case *types.Basic:
		return t.Name(), t.Info()&types.IsUntyped == 0 && t.Info()&types.IsNumeric != 0
	case *types.Named:
		if pkg := t.Obj().Pkg(); pkg != nil && pkg.Path() == "time" && f.imports("time") {
			return "time." + t.Obj().Name(), true
		}
	}
	return "", false
}

func (f *finder) imports(path string) bool {
	for _, i := range f.file.Imports {
		if i.Path.Value == strconv.Quote(path) && i.Name == nil {
			return true
		}
	}
	return false
}

// declaration doubles the times that a package has as constants. They become variables, so that a switch can reach
// them.
func (f *finder) declaration(d *ast.GenDecl) bool {
	if d.Tok != token.CONST || len(f.names) > 0 || !f.imports("time") {
		return d.Tok == token.VAR
	}
	var specs []*ast.ValueSpec
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		if len(v.Names) != 1 || len(v.Values) != 1 || v.Type != nil {
			return false
		}
		named, ok := f.info.Types[v.Values[0]].Type.(*types.Named)
		if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != "time" || named.Obj().Name() != "Duration" {
			return false
		}
		specs = append(specs, v)
	}
	f.edit.replace(f.offset(d.TokPos), f.offset(d.TokPos)+len("const"), "var")
	for _, v := range specs {
		e := v.Values[0]
		on := f.add(v, "twice as long", f.text(v))
		f.edit.wrap(f.offset(e.Pos()), f.offset(e.End()), "mutantTwice("+strings.TrimSuffix(strings.TrimPrefix(on,
			"mutantIs("), ")")+", ", ")")
	}
	return false
}
