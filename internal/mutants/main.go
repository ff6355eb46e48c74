package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	only    string
	out     string
	list    string
	budget  time.Duration
	workers int
	show    int
	again   bool
	quick   bool
	exec    string
	files   []string
	suites  []string
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "packages to plant mutants in, as a list with commas (default all)")
	flag.StringVar(&o.out, "out", ".mutants", "where to keep what is known, from the repository's root")
	flag.StringVar(&o.list, "survivors", "internal/mutants/survivors.txt", "the mutants that may survive, each with "+
		"the reason")
	flag.DurationVar(&o.budget, "budget", 0, "stop after this time; what is known is kept (default: no bound)")
	flag.IntVar(&o.workers, "workers", 2, "how many mutants to try at the same time")
	flag.IntVar(&o.show, "show", 0, "show the mutant with this number, and do nothing else")
	flag.BoolVar(&o.quick, "quick", false, "leave slow suites out; a later run without it tries what is left")
	flag.BoolVar(&o.again, "again", false, "try mutants again that are known to survive")
	flag.StringVar(&o.exec, "exec", "", "a command, with its arguments, that builds and tests are run through (as in "+
		"nice -n 19)")
	files := flag.String("files", "", "names of files, as a list with commas, to try mutants of (default all)")
	suites := flag.String("suites", "", "names of suites, as a list with commas, to try mutants with; a later run "+
		"tries what is left with the others")
	flag.Parse()
	if *files != "" {
		o.files = strings.Split(*files, ",")
	}
	if *suites != "" {
		o.suites = strings.Split(*suites, ",")
	}
	ok, err := run(&o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(o *options) (ok bool, err error) {
	root, err := repository()
	if err != nil {
		return false, err
	}
	targets := wanted(o.only)
	if len(targets) == 0 {
		return false, fmt.Errorf("-only %q names no package; the names are %s", o.only, strings.Join(names(), ", "))
	}
	dir := filepath.Join(root, o.out)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	p, err := plant(root, dir, targets)
	if err != nil {
		return false, err
	}
	p.through = strings.Fields(o.exec)
	if o.show > 0 {
		return p.show(o.show)
	}
	known, err := recall(filepath.Join(dir, "results.tsv"), targets)
	if err != nil {
		return false, err
	}
	if err := p.try(o, known); err != nil {
		return false, err
	}
	return report(os.Stdout, filepath.Join(root, o.list), targets, known)
}

// repository finds the root of the repository, above where the command was started.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "ARCHITECTURE.md")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no ARCHITECTURE.md in this folder or above it: start the command in the repository")
		}
	}
}

// show tells what a mutant is.
func (p *planted) show(id int) (bool, error) {
	for _, t := range p.targets {
		for i := range t.mutants {
			if m := &t.mutants[i]; m.ID == id {
				fmt.Printf("%s:%d %s\n", m.File, m.Line, m.key())
				return true, nil
			}
		}
	}
	return false, fmt.Errorf("there is no mutant %d in %s", id, strings.Join(names(), ", "))
}

// wanted are the targets that people ask for.
func wanted(only string) []*target {
	all := targets()
	if only == "" {
		return all
	}
	list := strings.Split(only, ",")
	return slices.DeleteFunc(all, func(t *target) bool { return !slices.Contains(list, t.name) })
}

func names() []string {
	var out []string
	for _, t := range targets() {
		out = append(out, t.name)
	}
	return out
}
