package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// verdict is what became of a mutant.
type verdict struct {
	Status string // killed, survived or unreached
	By     string // the suite that killed it
}

const (
	killed    = "killed"
	survived  = "survived"
	unreached = "unreached"
	// quickly says that a mutant has not been tried by slow suites yet.
	quickly = "quick"
)

// knowledge is what became of mutants, in memory and in a file.
type knowledge struct {
	mu   sync.Mutex
	file string
	of   map[string]verdict // by key
}

// recall reads what earlier runs have found out about mutants of packages that have not changed since.
func recall(file string, targets []*target) (*knowledge, error) {
	k := &knowledge{file: file, of: make(map[string]verdict)}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 {
			continue
		}
		if slices.ContainsFunc(targets, func(t *target) bool { return t.hash == fields[0] }) {
			k.of[fields[3]] = verdict{Status: fields[1], By: fields[2]}
		}
	}
	return k, nil
}

// learn notes what became of a mutant.
func (k *knowledge) learn(t *target, m *mutant, v verdict) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of[m.key()] = v
	f, err := os.OpenFile(k.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s\t%s\t%s\t%s\n", t.hash, v.Status, v.By, m.key())
	return err
}

func (k *knowledge) about(m *mutant) (verdict, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, known := k.of[m.key()]
	return v, known
}

// work is one mutant to try.
type work struct {
	target *target
	mutant *mutant
}

// try runs every mutant that is not known yet against the suites that reach it, until one kills it.
func (p *planted) try(o *options, known *knowledge) error {
	todo := p.todo(o, known)
	if len(todo) == 0 {
		return nil
	}
	suites, err := p.ready(o, todo)
	if err != nil {
		return err
	}
	began := time.Now()
	queue := make(chan work)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range o.workers {
		workers.Go(func() {
			for w := range queue {
				v := p.judge(w, suites)
				if (o.quick || len(o.suites) > 0) && v.Status != killed {
					v.By = quickly
				}
				mu.Lock()
				done++
				if e := known.learn(w.target, w.mutant, v); e != nil && err == nil {
					err = e
				}
				fmt.Printf("%d/%d %s %s %s (%d)\n", done, len(todo), v.Status, v.By, w.mutant.key(), w.mutant.ID)
				mu.Unlock()
			}
		})
	}
	for _, w := range todo {
		if o.budget > 0 && time.Since(began) > o.budget {
			fmt.Printf("the budget of %s is used up; run again to go on\n", o.budget)
			break
		}
		queue <- w
	}
	close(queue)
	workers.Wait()
	return err
}

// todo are the mutants of which nothing is known.
func (p *planted) todo(o *options, known *knowledge) []work {
	var out []work
	for _, t := range p.targets {
		for i := range t.mutants {
			m := &t.mutants[i]
			if len(o.files) > 0 && !slices.Contains(o.files, filepath.Base(m.File)) {
				continue
			}
			if v, is := known.about(m); !is || v.Status != killed && (o.again || v.By == quickly && !o.quick) {
				out = append(out, work{t, m})
			}
		}
	}
	return out
}

// ready builds the suites that are needed and runs each once without a mutant, to see that it passes, how long it takes
// and what it reaches.
func (p *planted) ready(o *options, todo []work) ([]*suite, error) {
	var out []*suite
	built := map[string]string{}
	for _, s := range suites() {
		if len(o.suites) > 0 && !slices.Contains(o.suites, s.name) {
			continue
		}
		if o.quick && s.slow || !slices.ContainsFunc(todo, func(w work) bool {
			return slices.Contains(s.of, w.target.name)
		}) {
			continue
		}
		var err error
		if s.binary = built[s.path]; s.binary == "" {
			if s.binary, err = p.build(s); err != nil {
				return nil, err
			}
			built[s.path] = s.binary
		}
		reached := filepath.Join(p.dir, s.name+".reached")
		if err := p.look(s, reached); err != nil {
			return nil, err
		}
		fmt.Printf("suite %s takes %s and reaches %d mutants\n", s.name, s.took.Round(time.Millisecond), len(s.reached))
		out = append(out, s)
	}
	return out, nil
}

// look runs a suite without a mutant, each test by itself if the suite wants it so.
func (p *planted) look(s *suite, file string) error {
	if !s.each {
		t, err := p.lookAt(s, file, s.args)
		s.took, s.reached = t.took, t.reached
		return err
	}
	list, err := p.list(s)
	if err != nil {
		return err
	}
	s.reached = make(map[int]bool)
	for _, name := range list {
		t, err := p.lookAt(s, file, s.only(name))
		if err != nil {
			return err
		}
		t.name = name
		s.tests = append(s.tests, t)
		s.took += t.took
		maps.Copy(s.reached, t.reached)
	}
	slices.SortFunc(s.tests, func(a, b reach) int { return cmp.Compare(a.took, b.took) })
	return nil
}

func (p *planted) lookAt(s *suite, file string, args []string) (reach, error) {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return reach{}, err
	}
	began := time.Now()
	if text, err := p.play(s, args, file, 20*time.Minute); err != nil {
		return reach{}, fmt.Errorf("the suite %s %v fails without a mutant: %w\n%s", s.name, args, err, text)
	}
	t := reach{took: time.Since(began)}
	var err error
	t.reached, err = numbers(file)
	return t, err
}

// list names the tests of a suite. Subtests are known only once they have run.
func (p *planted) list(s *suite) ([]string, error) {
	args, prefix := append(slices.Clone(s.args), "-test.list="+cmp.Or(s.match, "^Test")), ""
	if s.parent != "" {
		args, prefix = append(slices.Clone(s.args), "-test.v", "-test.run=^"+s.parent+"$"), "=== RUN   "+s.parent+"/"
	}
	cmd := p.command(append([]string{s.binary}, args...)...)
	cmd.Dir = filepath.Join(p.root, s.path)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", s.path, err)
	}
	var names []string
	for line := range strings.SplitSeq(string(out), "\n") {
		name, ok := strings.CutPrefix(line, prefix)
		if ok && (s.parent != "" || strings.HasPrefix(name, "Test")) {
			names = append(names, name)
		}
	}
	return names, nil
}

func numbers(file string) (map[int]bool, error) {
	out := make(map[int]bool)
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return out, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		id, err := strconv.Atoi(lines.Text())
		if err != nil {
			return nil, err
		}
		out[id] = true
	}
	return out, nil
}

// judge runs the suites that reach a mutant.
func (p *planted) judge(w work, suites []*suite) verdict {
	v := verdict{Status: unreached, By: "-"}
	for _, s := range suites {
		if !s.reached[w.mutant.ID] || !slices.Contains(s.of, w.target.name) {
			continue
		}
		v.Status = survived
		for _, x := range s.parts(w.mutant.ID) {
			patience := 4*x.took + 20*time.Second
			text, err := p.play(s, x.args, strconv.Itoa(w.mutant.ID), patience)
			if err != nil && strings.Contains(text, "test timed out") {
				// because of the mutant, or because the machine was busy
				_, err = p.play(s, x.args, strconv.Itoa(w.mutant.ID), 2*patience)
			}
			if err != nil {
				return verdict{Status: killed, By: s.name}
			}
		}
	}
	return v
}

// play runs a suite with TENON_MUTANT set. A test that never ends has found the mutant, too. The test binary itself
// looks at the clock: what it is run through may have it wait for its turn.
func (p *planted) play(s *suite, args []string, mutant string, patience time.Duration) (string, error) {
	cmd := p.command(append([]string{s.binary, "-test.failfast", "-test.timeout=" + patience.String()}, args...)...)
	cmd.Dir = filepath.Join(p.root, s.path)
	cmd.Env = append(os.Environ(), "TENON_MUTANT="+mutant)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}
