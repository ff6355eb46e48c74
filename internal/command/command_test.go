package command

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestAllHasEachCommand: whoever asks for all commands, to see that none is forgotten somewhere, gets them all.
func TestAllHasEachCommand(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "command.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared, listed []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Label" && f.Recv != nil {
			declared = append(declared, fmt.Sprint(f.Recv.List[0].Type))
		}
	}
	for _, c := range All() {
		listed = append(listed, strings.TrimPrefix(fmt.Sprintf("%T", c), "command."))
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if len(declared) < 10 || !slices.Equal(declared, listed) {
		t.Errorf("All has %v, and the commands are %v", listed, declared)
	}
}

// What metrics call a command stays when its type is renamed.
func TestLabels(t *testing.T) {
	var got []string
	for _, c := range All() {
		got = append(got, c.Label())
	}
	slices.Sort(got)
	want := []string{"adopt", "bind", "createclaim", "deleteclaim", "deletenode", "evict", "fence", "initialize",
		"launchinstance", "nominate", "open", "register", "release", "setclaim", "setpool", "terminate", "unfence",
		"writeclaimhash", "writepoolhash"}
	if !slices.Equal(got, want) {
		t.Errorf("labels are %v, want %v", got, want)
	}
}
