package archtest

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tenon-sh/tenon"

// floors says on which floor a package stands, and those below it that it does not name. A package imports only lower
// floors.
func floors() map[string]int {
	return map[string]int{
		"internal/resource": 0, "internal/require": 0, "internal/pack/lp": 0,
		"internal/reason": 0, "internal/render": 2,
		"internal/cluster": 1, "internal/command": 1, "internal/pack": 1,
		"internal/topology": 2, "internal/market": 2, "internal/purchase": 2, "internal/whatif": 2,
		"internal/schedule": 2, "internal/disrupt": 2, "internal/nominate": 2, "internal/lifecycle": 2,
		"internal/plan":     2,
		"internal/validate": 3, "internal/ingest": 3, "internal/actuate": 3, "internal/observe": 3,
		"internal/replay":      3,
		"internal/webhook":     3,
		"internal/translate":   3,
		"internal/version":     3,
		"internal/lease":       3,
		"internal/loop":        4,
		"internal/provisioner": 4,
		"internal/convert":     4,
		"internal/logging":     4,
		"internal/tolerant":    4,
		"operator":             5,
	}
}

// familyOf is the package of floors that a package is or stands below, and its floor.
func familyOf(name string) (family string, floor int, known bool) {
	all := floors()
	for name != "." {
		if floor, known := all[name]; known {
			return name, floor, true
		}
		name = path.Dir(name)
	}
	return "", 0, false
}

// allowed are the imports on the same floor that have a reason, by family: what stands below the same package may
// import each other.
func allowed() map[[2]string]string {
	return map[[2]string]string{
		{"internal/command", "internal/cluster"}:  "a command carries the values that it is about",
		{"internal/require", "internal/resource"}: "both stand on the ground",
		{"internal/plan", "internal/schedule"}:    "plan puts its siblings together",
		{"internal/plan", "internal/disrupt"}:     "plan puts its siblings together",
		{"internal/plan", "internal/lifecycle"}:   "plan puts its siblings together",
		{"internal/market", "internal/topology"}: "DaemonSets' pods are told from others by the rules that " +
			"select them",
		{"internal/purchase", "internal/topology"}:       "pods are assigned and verified by the rules between them",
		{"internal/purchase", "internal/market"}:         "it buys on the market",
		{"internal/schedule", "internal/topology"}:       "a place is looked for by the rules between pods",
		{"internal/schedule", "internal/market"}:         "a place may be on a node to be bought",
		{"internal/schedule", "internal/purchase"}:       "who finds no room is bought a node",
		{"internal/whatif", "internal/topology"}:         "pods move by the same rules as in a placement",
		{"internal/whatif", "internal/market"}:           "what takes a node's place is bought on the market",
		{"internal/whatif", "internal/purchase"}:         "what takes a node's place is bought as in a placement",
		{"internal/whatif", "internal/schedule"}:         "pods that wait get their places before others move",
		{"internal/disrupt", "internal/market"}:          "what takes a node's place is a bin",
		{"internal/disrupt", "internal/purchase"}:        "why no single node takes a node's place",
		{"internal/disrupt", "internal/whatif"}:          "consolidation asks what would be",
		{"internal/plan", "internal/market"}:             "plan puts its siblings together",
		{"internal/disrupt", "internal/schedule"}:        "consolidation is scheduling over an overlay",
		{"internal/ingest", "internal/validate"}:         "what users wrote is judged at the door",
		{"internal/ingest", "internal/ingest/apiserver"}: "lists of pods are to be current",
		{"internal/ingest", "internal/ingest/decode"}: "objects are stripped and read before the Book takes " +
			"them in",
		{"internal/ingest", "internal/ingest/tries"}:           "the Book hands it snapshots",
		{"internal/ingest", "internal/ingest/podspec"}:         "classes of pods are made by it",
		{"internal/ingest/podspec", "internal/ingest/decode"}:  "selectors have one bound",
		{"internal/ingest/podspec", "internal/validate"}:       "keys of labels have one form",
		{"internal/ingest", "internal/ingest/volumes"}:         "what volumes ask for is found out there",
		{"internal/ingest/volumes", "internal/ingest/decode"}:  "a volume's disk is read there",
		{"internal/ingest/volumes", "internal/ingest/podspec"}: "volumes change what a pod's spec asks for",
		{"internal/ingest", "internal/ingest/offerings"}:       "what pools can buy is kept there",
		{"internal/ingest", "internal/ingest/inflight"}:        "outcomes of commands are facts in flight",
		{"internal/ingest", "internal/ingest/quarantine"}:      "what the planner failed on is left out of snapshots",
		{"internal/ingest", "internal/ingest/evictions"}:       "evictions count by workload",
		{"internal/ingest", "internal/ingest/cloud"}:           "what the cloud says it runs",
		{"internal/ingest", "internal/ingest/drift"}:           "what the cloud says of drift",
		{"internal/ingest/inflight", "internal/ingest/decode"}: "versions are read there",
		{"internal/ingest/decode", "internal/validate"}:        "keys of labels and findings have one form",
		{"internal/translate", "internal/validate"}:            "both tell authors what is wrong in the same words",
		{"internal/plan", "internal/nominate"}:                 "plan puts its siblings together",
		{"internal/nominate", "internal/schedule"}:             "pods are told what the scheduling has found",
		{"internal/nominate", "internal/lifecycle"}: "a node is kept closed for less than it may take to " +
			"register",

		{"internal/render", "internal/schedule"}: "what is described lies beside those who describe it",
		{"internal/render", "internal/market"}:   "what is described lies beside those who describe it",
		{"internal/render", "internal/purchase"}: "what is described lies beside those who describe it",
		{"internal/render", "internal/topology"}: "what is described lies beside those who describe it",
		{"internal/plan", "internal/render"}: "a condition in the API holds words: whether it says a reason is asked " +
			"of them",
		{"internal/lifecycle", "internal/render"}: "a condition in the API holds words: whether it says a reason is " +
			"asked of them",
	}
}

// pkg is what the go command says about a package.
type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
	Deps       []string
	Name       string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Dir,Imports,Deps,Name", "./...")
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.String())
	}
	var list []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatalf("reading what go list said: %v", err)
		}
		list = append(list, p)
	}
	if len(list) < 10 {
		t.Fatalf("go list knows only %d packages", len(list))
	}
	return list
}

func rel(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }

func TestRule1Floors(t *testing.T) {
	excused := allowed()
	for _, p := range packages(t) {
		from, low, known := familyOf(rel(p.ImportPath))
		if !known {
			continue
		}
		for _, i := range p.Imports {
			to, high, internal := familyOf(rel(i))
			if internal && high >= low && from != to && excused[[2]string{from, to}] == "" {
				t.Errorf("%s (floor %d) imports %s (floor %d): a package imports only lower floors, so that what "+
					"decides does not depend on what acts",
					rel(p.ImportPath), low, rel(i), high)
			}
		}
	}
}

func TestRule1EveryRoomHasAFloor(t *testing.T) {
	// Rooms that stand beside the building: tools, tests and the demo.
	beside := []string{"internal/apidocs", "internal/archtest", "internal/chart", "internal/chart/helm",
		"internal/chart/onlab", "internal/lab",
		"internal/lab/labpods", "internal/lab/labtest", "internal/lab/labaws", "internal/demo", "internal/e2e",
		"internal/fuzz", "internal/fuzz/corpus",
		"internal/disrupt/disrupttest", "internal/hostile", "internal/mutants", "internal/oracle", "internal/sim"}
	for _, p := range packages(t) {
		name := rel(p.ImportPath)
		if _, _, ok := familyOf(name); ok || !strings.HasPrefix(name, "internal/") || slices.Contains(beside, name) {
			continue
		}
		t.Errorf("%s has no floor: say where it stands in internal/archtest and in ARCHITECTURE.md", name)
	}
}

func TestRule1PublicPackagesKnowNothingInternal(t *testing.T) {
	for _, p := range packages(t) {
		name := rel(p.ImportPath)
		if !strings.HasPrefix(name, "api/") && !strings.HasPrefix(name, "cloudprovider") {
			continue
		}
		for _, i := range p.Imports {
			if strings.HasPrefix(rel(i), "internal/") {
				t.Errorf("%s imports %s: other people's providers and clients can't", name, rel(i))
			}
		}
	}
}

// The simulator of EC2 is another's word on what EC2 does. A provider that knew it could lean on it, and a simulator
// that knew the provider would make the same mistakes. Both may read the tables of types and prices.
func TestTheEC2SimulatorStandsApart(t *testing.T) {
	const provider, simulator = "cloudprovider/aws", "cloudprovider/aws/ec2sim"
	users := []string{"cmd/tenon", "internal/demo", "internal/lab/labaws"}
	within := func(name, tree string) bool { return name == tree || strings.HasPrefix(name, tree+"/") }
	for _, p := range packages(t) {
		name := rel(p.ImportPath)
		for _, i := range p.Imports {
			i = rel(i)
			switch {
			case within(name, simulator) && within(i, provider) && !within(i, simulator) && i != provider+"/price":
				t.Errorf("%s imports %s: the simulator would share the provider's mistakes", name, i)
			case !within(name, simulator) && within(i, simulator) && !slices.Contains(users, name):
				t.Errorf("%s imports %s: only the lab, the demo and commands know that there is a simulator", name, i)
			}
		}
	}
}

// What the core knows of a cloud is package cloudprovider: the SDK of one is that provider's own business, and whoever
// runs another should not carry it along.
func TestOnlyTheAWSProviderKnowsItsSDK(t *testing.T) {
	users := []string{"internal/lab/labaws"}
	for _, p := range packages(t) {
		name := rel(p.ImportPath)
		if name == "cloudprovider/aws" || strings.HasPrefix(name, "cloudprovider/aws/") ||
			slices.Contains(users, name) {
			continue
		}
		for _, i := range p.Imports {
			if strings.HasPrefix(i, "github.com/aws/") {
				t.Errorf("%s imports %s: only cloudprovider/aws calls AWS, and the lab sets it up", name, i)
			}
		}
	}
}

func TestRule2LowerFloorsArePure(t *testing.T) {
	banned := map[string]string{
		"k8s.io/":                       "decisions are made on our own values; only ingest knows Kubernetes objects",
		"sigs.k8s.io/":                  "decisions are made on our own values; only ingest knows Kubernetes objects",
		"context":                       "a pure function can't be cancelled and carries no options",
		"log":                           "reasons are data; only observe writes logs",
		"os":                            "the snapshot is the only input",
		"net":                           "the snapshot is the only input",
		"math/rand":                     "the same input gives the same bytes",
		"sync":                          "nothing is shared, so nothing is locked",
		"github.com/prometheus/":        "reasons are data; only observe counts them",
		"github.com/go-logr/":           "reasons are data; only observe writes logs",
		module + "/api/":                "only ingest knows Kubernetes objects",
		module + "/cloudprovider":       "a cloud is an edge; ingest converts what it says",
		"github.com/robfig/":            "time zones and calendars are ingest's; a snapshot says what holds now",
		"k8s.io/apimachinery/pkg/types": "names are strings inside",
	}
	for _, p := range packages(t) {
		if _, f, ok := familyOf(rel(p.ImportPath)); !ok || f > 2 {
			continue
		}
		for _, i := range p.Imports {
			for prefix, reason := range banned {
				if i == prefix || strings.HasPrefix(i, prefix) && strings.HasSuffix(prefix, "/") ||
					strings.HasPrefix(i, prefix+"/") {
					t.Errorf("%s imports %s: %s", rel(p.ImportPath), i, reason)
				}
			}
		}
	}
}

func TestRule2NoClockBelow(t *testing.T) {
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	for _, p := range packages(t) {
		if _, f, ok := familyOf(rel(p.ImportPath)); !ok || f > 2 {
			continue
		}
		eachFile(t, p.Dir, func(name string, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, sel.Sel.Name) {
					t.Errorf("%s calls time.%s: Snapshot.Now is the only clock that decisions know", name, sel.Sel.Name)
				}
				return true
			})
		})
	}
}

func TestRule9NoGlobals(t *testing.T) {
	for _, p := range packages(t) {
		eachFile(t, p.Dir, func(name string, file *ast.File) {
			for _, decl := range file.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == "init" {
						t.Errorf("%s has init(): what a package needs is passed to it", name)
					}
				case *ast.GenDecl:
					for _, bad := range globals(d) {
						t.Errorf("%s declares var %s at package level: state belongs to a value that somebody owns",
							name, bad)
					}
				}
			}
		})
	}
}

// globals lists package-level variables, except for interface checks (var _ I = …), embedded files, error values,
// compiled expressions and what the linker writes, which only a variable can take: none of them changes in a process.
func globals(d *ast.GenDecl) []string {
	if d.Tok != token.VAR {
		return nil
	}
	if d.Doc != nil && (strings.Contains(rawText(d.Doc), "go:embed") || strings.Contains(rawText(d.Doc),
		"set by the linker")) {
		return nil
	}
	var out []string
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || isFixed(v) || v.Doc != nil && strings.Contains(rawText(v.Doc), "go:embed") {
			continue
		}
		for _, name := range v.Names {
			if name.Name != "_" {
				out = append(out, name.Name)
			}
		}
	}
	return out
}

func rawText(g *ast.CommentGroup) string {
	var b strings.Builder
	for _, c := range g.List {
		b.WriteString(c.Text)
	}
	return b.String()
}

func isFixed(v *ast.ValueSpec) bool {
	if len(v.Values) != 1 {
		return false
	}
	call, ok := v.Values[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && (x.Name == "errors" && sel.Sel.Name == "New" || x.Name == "regexp" && sel.Sel.Name == "MustCompile")
}

func TestRule9NoDrawers(t *testing.T) {
	for _, p := range packages(t) {
		for _, banned := range []string{"util", "utils", "common", "helper", "helpers", "types", "misc"} {
			if p.Name == banned || filepath.Base(p.Dir) == banned {
				t.Errorf("%s is a drawer: name a package after what it is for", rel(p.ImportPath))
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		documented := false
		eachFile(t, p.Dir, func(_ string, file *ast.File) { documented = documented || file.Doc != nil })
		if !documented && p.Name != "main" {
			t.Errorf("%s has no package comment: say what it is for, its floor and what it may touch",
				rel(p.ImportPath))
		}
	}
}

// eachFile parses the hand-written files of a package that are not tests.
func eachFile(t *testing.T, dir string, visit func(name string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != dir {
			return fs.SkipDir
		}
		base := filepath.Base(path)
		if d.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") ||
			strings.HasPrefix(base, "zz_generated") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		visit(path, file)
		return nil
	})
	if err != nil {
		t.Fatalf("reading %s: %v", dir, err)
	}
}
