package main

import (
	"path"
	"slices"
	"strings"
	"time"
)

// targets are the packages that mutants are planted in: those whose faults end machines, evict pods or spend money.
func targets() []*target {
	out := []*target{
		{name: "lifecycle", path: "internal/lifecycle"},
		{name: "actuate", path: "internal/actuate"},
		{name: "plan", path: "internal/plan"},
		{name: "nominate", path: "internal/nominate"},
		{name: "aws", path: "cloudprovider/aws", files: []string{"create.go", "end.go", "instances.go"}},
		{name: "launch", path: "cloudprovider/aws/launch", files: []string{"fleetlaunch.go", "lostanswer.go",
			"prepare.go"}},
		{name: "ownership", path: "cloudprovider/aws/ownership", files: []string{"instances.go", "register.go",
			"resolve.go", "underway.go"}},
	}
	for _, part := range disruptParts() {
		out = append(out, &target{name: path.Base(part), path: part})
	}
	return out
}

// disruptParts are the packages that take nodes away.
func disruptParts() []string {
	out := []string{"internal/disrupt"}
	for _, part := range []string{"destination", "drift", "empty", "execute", "repair", "saving", "search", "static"} {
		out = append(out, "internal/disrupt/"+part)
	}
	return out
}

// deciders are the names of the targets that the tests of whole plans try.
func deciders() []string {
	out := []string{"lifecycle", "plan", "nominate"}
	for _, part := range disruptParts() {
		out = append(out, path.Base(part))
	}
	return out
}

// suite is a way to run tests.
type suite struct {
	name string
	path string   // the package whose tests they are
	args []string // of the test binary
	// slow suites are left out of a quick run.
	slow bool
	// of are the targets that the suite is meant for.
	of []string
	// took is how long it takes without a mutant.
	took time.Duration
	// reached are the mutants that it gets to.
	reached map[int]bool
	binary  string
	// each has every test looked at by itself: a mutant is tried by those tests only that reach it. If parent is set,
	// the tests are the subtests of that one; else those that match.
	each   bool
	parent string
	match  string
	tests  []reach
}

// reach is what a test gets to, and how long it takes.
type reach struct {
	name    string
	took    time.Duration
	reached map[int]bool
}

// first is how many of the quickest tests that reach a mutant try it before the others do; then come more times as
// many, and so on.
const (
	first = 6
	more  = 6
)

// part is some of the tests of a suite, and how long they take without a mutant.
type part struct {
	args []string
	took time.Duration
}

// parts are the tests that a mutant is tried by, in order.
func (s *suite) parts(id int) []part {
	if !s.each {
		return []part{{s.args, s.took}}
	}
	var names []string
	var took []time.Duration
	for _, t := range s.tests {
		if t.reached[id] {
			names, took = append(names, t.name), append(took, t.took)
		}
	}
	var out []part
	for begin, end := 0, min(first, len(names)); begin < len(names); begin, end = end, min(more*end, len(names)) {
		x := part{args: s.only(names[begin:end]...)}
		for _, d := range took[begin:end] {
			x.took += d
		}
		out = append(out, x)
	}
	return out
}

// only are the arguments that run some tests.
func (s *suite) only(names ...string) []string {
	pattern := "^(" + strings.Join(names, "|") + ")$"
	if s.parent != "" {
		pattern = "^" + s.parent + "$/" + pattern
	}
	return append(slices.Clone(s.args), "-test.run="+pattern)
}

// storms are the tests of plan that take seconds, rests those of disrupt.
const (
	rests = "TestConsolidationComesToRest|TestSpreadWorkloadComesToRestNearTheBest|" +
		"TestProposalsHoldWhenPlacedTogether|TestHostileSearchIsCut|TestSettledCostNearBruteForce"
	storms = "TestInterruptionStorm|TestAdviceStorm|TestUnruledClusterComesToRest|TestTangledClusters|" +
		"TestWhoIsGuidedFindsRoom|TestPodsDoNotWanderBetweenReplacements"
)

// suites are tried in this order: what is quick comes first. Random tests get one fixed seed, so that a second run says
// the same.
func suites() []*suite {
	rapid := []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.checks=40"}
	out := []*suite{
		{name: "lifecycle", path: "internal/lifecycle", of: []string{"lifecycle"}},
		{name: "actuate", path: "internal/actuate", each: true, of: []string{"actuate"}},
		{name: "stories", path: "internal/plan", each: true, parent: "TestStories", of: deciders()},
		{name: "launch", path: "cloudprovider/aws/launch", each: true, of: []string{"launch", "ownership"}},
		{name: "ownership", path: "cloudprovider/aws/ownership", each: true, of: []string{"ownership"}},
		{name: "aws", path: "cloudprovider/aws", each: true, of: []string{"aws", "launch", "ownership"},
			args: []string{"-test.short"}},
		{name: "plan", path: "internal/plan", each: true,
			args: append([]string{"-test.short", "-test.skip=^(TestStories|" + storms + ")$"}, rapid...),
			of:   deciders()},
		{name: "storms", path: "internal/plan", slow: true, each: true,
			args: append([]string{"-test.short", "-test.skip=^TestStories$"}, rapid...), match: "^(" + storms + ")$",
			of: deciders()},
		{name: "sim", path: "internal/sim", slow: true, args: []string{"-test.run=TestManySeeds", "-seeds=100",
			"-from=1"}, of: append(deciders(), "actuate")},
	}
	for _, part := range disruptParts() {
		args := append([]string{"-test.short"}, rapid...)
		out = append(out,
			&suite{name: path.Base(part), path: part, each: true, of: deciders(),
				args: append(slices.Clone(args), "-test.skip=^("+rests+")$")},
			&suite{name: path.Base(part) + "-rests", path: part, slow: true, each: true, of: deciders(), args: args,
				match: "^(" + rests + ")$"})
	}
	return out
}
