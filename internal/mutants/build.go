package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// target is a package that mutants are planted in.
type target struct {
	name    string // as people call it
	path    string // from the repository's root
	files   []string
	hash    string // of its source
	mutants []mutant
}

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// planted is every mutant, and where the changed sources are.
type planted struct {
	root    string
	dir     string
	overlay string
	targets []*target
	// through is a command that builds and tests are run through; none if it is empty.
	through []string
}

// command is a command that is run through what people have asked for.
func (p *planted) command(line ...string) *exec.Cmd {
	line = append(slices.Clone(p.through), line...)
	return exec.Command(line[0], line[1:]...)
}

// plant writes all mutants of the packages into an overlay.
func plant(root, dir string, targets []*target) (*planted, error) {
	p := &planted{root: root, dir: dir, overlay: filepath.Join(dir, "overlay.json"), targets: targets}
	replace, next := map[string]string{}, 0
	for _, t := range targets {
		if err := p.plantIn(t, &next, replace); err != nil {
			return nil, fmt.Errorf("plant mutants in %s: %w", t.path, err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	return p, os.WriteFile(p.overlay, text, 0o644)
}

func (p *planted) plantIn(t *target, next *int, replace map[string]string) error {
	fset := token.NewFileSet()
	pkg, files, info, err := check(p.root, t.path, fset)
	if err != nil {
		return err
	}
	sum := fnv.New64a()
	for i, file := range files {
		name := filepath.Join(pkg.Dir, pkg.GoFiles[i])
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		sum.Write(src)
		if len(t.files) > 0 && !slices.Contains(t.files, pkg.GoFiles[i]) {
			continue
		}
		f := &finder{fset: fset, info: info, file: file, name: t.path + "/" + pkg.GoFiles[i], src: src,
			edit: &editor{src: src},
			next: func() int { *next++; return *next }}
		for _, d := range file.Decls {
			f.walk(d)
		}
		t.mutants = append(t.mutants, f.out...)
		if err := p.write(name, f.edit.result(), replace); err != nil {
			return err
		}
	}
	t.hash = fmt.Sprintf("%016x", sum.Sum64())
	return p.write(filepath.Join(pkg.Dir, "zz_mutant.go"), []byte(strings.Replace(switchSource, "package switches",
		"package "+files[0].Name.Name, 1)), replace)
}

// write puts a changed source into the overlay.
func (p *planted) write(name string, text []byte, replace map[string]string) error {
	rel, err := filepath.Rel(p.root, name)
	if err != nil {
		return err
	}
	// gofmt and editors leave it alone
	to := filepath.Join(p.dir, strings.ReplaceAll(rel, string(filepath.Separator), "__")+".txt")
	replace[name] = to
	return os.WriteFile(to, text, 0o644)
}

// check reads a package with its types. What it imports comes from the compiler's own export data.
func check(root, path string, fset *token.FileSet) (*listed, []*ast.File, *types.Info, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./"+path)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	exports, last := map[string]string{}, &listed{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var l listed
		if err := dec.Decode(&l); err != nil {
			return nil, nil, nil, fmt.Errorf("read what go list says: %w", err)
		}
		exports[l.ImportPath], last = l.Export, &l
	}
	var files []*ast.File
	for _, name := range last.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(last.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, nil, err
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
	_, err = conf.Check(last.ImportPath, fset, files, info)
	return last, files, info, err
}

// build compiles the tests of a suite with all mutants in place.
func (p *planted) build(s *suite) (binary string, err error) {
	binary = filepath.Join(p.dir, strings.ReplaceAll(s.path, "/", "_")+".test")
	cmd := p.command("go", "test", "-c", "-vet=off", "-overlay", p.overlay, "-o", binary, "./"+s.path)
	cmd.Dir = p.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", s.path, err, out)
	}
	return binary, nil
}

// switchSource goes into every package that has mutants. TENON_MUTANT is the number of the one that is on, or the name
// of a file that gets the numbers of all that are reached.
const switchSource = `package switches

import (
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

var mutantOn, mutantFile = func() (int, *os.File) {
	text := os.Getenv("TENON_MUTANT")
	if id, err := strconv.Atoi(text); err == nil {
		return id, nil
	}
	if text == "" {
		return 0, nil
	}
	f, err := os.OpenFile(text, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	return 0, f
}()

var mutantSeen [1 << 15]atomic.Bool

func mutantIs(id int) bool {
	if mutantFile != nil && !mutantSeen[id].Swap(true) { // tests count allocations, so it makes none
		mutantFile.WriteString(strconv.Itoa(id) + "\n")
	}
	return id == mutantOn
}

func mutantPick[T any](id int, a, b T) T {
	if mutantIs(id) {
		return b
	}
	return a
}

func mutantTwice(id int, d time.Duration) time.Duration {
	if mutantIs(id) {
		return 2 * d
	}
	return d
}
`
