// Command corpus picks the inputs that the repository keeps for a fuzz target. Of what Go's fuzzer has kept in its
// cache it takes those that reach code which the target's seeds and the inputs that are kept already don't reach, the
// one that adds most first. What is kept already stays.
//
//	make fuzz FUZZTIME=20m && make fuzz-corpus
//
// It stands beside the building: nothing imports it.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// least is how many inputs a target has, if the fuzzer has found so many.
const least = 10

// longest is the size of the longest input that is kept.
const longest = 16 << 10

func main() {
	pkg := flag.String("package", "", "the package of the target, from the repository's root")
	target := flag.String("target", "", "the fuzz target")
	most := flag.Int("most", 40, "how many inputs to keep at most")
	flag.Parse()
	if *pkg == "" || *target == "" {
		fmt.Fprintln(os.Stderr, "corpus: -package and -target are needed; make fuzz-corpus gives both for every target")
		os.Exit(2)
	}
	if err := refresh(*pkg, *target, *most); err != nil {
		fmt.Fprintf(os.Stderr, "corpus: %s: %v\n", *target, err)
		os.Exit(1)
	}
}

// input is a file that the fuzzer has written, and what it reaches beyond the others.
type input struct {
	name, path string
	size       int64
	reaches    map[string]bool
}

// refresh adds to the inputs that are kept.
func refresh(pkg, target string, most int) error {
	keep := filepath.Join(pkg, "testdata", "fuzz", target)
	cache, err := cacheOf(pkg, target)
	if err != nil {
		return err
	}
	r, err := newRunner(pkg, target)
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	reached, err := r.reaches("seed#.*")
	if err != nil {
		return err
	}
	kept, err := inputs(keep)
	if err != nil {
		return err
	}
	if err := r.measure(kept); err != nil {
		return err
	}
	for _, in := range kept {
		add(reached, in.reaches)
	}
	found, err := inputs(cache)
	if err != nil {
		return err
	}
	if err := r.measure(found); err != nil {
		return err
	}
	before := len(reached)
	chosen := choose(found, reached, most-len(kept))
	chosen = append(chosen, shortest(found, append(kept, chosen...), min(least, most)-len(kept)-len(chosen))...)
	for _, in := range chosen {
		if err := copyFile(in.path, filepath.Join(keep, in.name)); err != nil {
			return err
		}
	}
	fmt.Printf("%s: %d kept, %d more of %d that the fuzzer found; they reach %d blocks more than the %d before\n",
		target, len(kept), len(chosen), len(found), len(reached)-before, before)
	return nil
}

// choose takes the inputs that add most to what is reached, one after the other. Of equals it takes the shortest.
func choose(from []*input, reached map[string]bool, most int) []*input {
	var out []*input
	for len(out) < most {
		var best *input
		gain := 0
		for _, in := range from {
			n := 0
			for block := range in.reaches {
				if !reached[block] {
					n++
				}
			}
			if n > gain || n == gain && n > 0 && in.size < best.size {
				best, gain = in, n
			}
		}
		if best == nil {
			break
		}
		add(reached, best.reaches)
		out = append(out, best)
	}
	return out
}

// shortest are so many of the inputs that are not taken yet. The fuzzer counts how often code runs, too: where all code
// is reached, what it found interesting for that is worth some files.
func shortest(from, taken []*input, count int) []*input {
	rest := slices.DeleteFunc(slices.Clone(from), func(in *input) bool {
		return slices.ContainsFunc(taken, func(t *input) bool { return t.name == in.name })
	})
	slices.SortStableFunc(rest, func(a, b *input) int { return cmp.Compare(a.size, b.size) })
	return rest[:max(0, min(count, len(rest)))]
}

func add(to, from map[string]bool) {
	for block := range from {
		to[block] = true
	}
}

// cacheOf is the folder in which the go command keeps what the fuzzer has found.
func cacheOf(pkg, target string) (string, error) {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOCACHE: %w", err)
	}
	path, err := exec.Command("go", "list", "./"+pkg).Output()
	if err != nil {
		return "", fmt.Errorf("go list ./%s: %w", pkg, err)
	}
	return filepath.Join(string(bytes.TrimSpace(cache)), "fuzz", string(bytes.TrimSpace(path)), target), nil
}

// inputs are the files of a folder that are short enough, by name. A folder that is not there has none.
func inputs(dir string) ([]*input, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var out []*input
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			return nil, err
		}
		if info.Size() <= longest {
			out = append(out, &input{name: f.Name(), path: filepath.Join(dir, f.Name()), size: info.Size()})
		}
	}
	return out, nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// runner runs a target with one input at a time and sees what it reaches.
type runner struct{ dir, binary, target string }

func newRunner(pkg, target string) (*runner, error) {
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		return nil, err
	}
	r := &runner{dir: dir, binary: filepath.Join(dir, "fuzz.test"), target: target}
	build := exec.Command("go", "test", "-c", "-vet=off", "-cover", "-covermode=set",
		"-coverpkg=./internal/...,./cloudprovider/...", "-o", r.binary, "./"+pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out)
	}
	return r, nil
}

// measure finds out what each input reaches.
func (r *runner) measure(list []*input) error {
	for _, in := range list {
		if err := copyFile(in.path, filepath.Join(r.dir, "testdata", "fuzz", r.target, in.name)); err != nil {
			return err
		}
	}
	for _, in := range list {
		var err error
		if in.reaches, err = r.reaches(in.name); err != nil {
			return err
		}
	}
	return nil
}

// reaches are the blocks of code that run with the inputs whose names match.
func (r *runner) reaches(names string) (map[string]bool, error) {
	profile := filepath.Join(r.dir, "profile")
	cmd := exec.Command(r.binary, "-test.run", "^"+r.target+"$/^"+names+"$", "-test.coverprofile", profile)
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s fails: %w\n%s", names, err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && slices.Contains(fields[2:], "1") {
			out[fields[0]] = true
		}
	}
	return out, nil
}
