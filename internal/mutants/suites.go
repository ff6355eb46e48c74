package main

import "time"

// targets are the packages that mutants are planted in: those whose faults end machines, evict pods or spend money.
func targets() []*target {
	return []*target{
		{name: "lifecycle", path: "internal/lifecycle"},
		{name: "actuate", path: "internal/actuate"},
		{name: "plan", path: "internal/plan"},
		{name: "disrupt", path: "internal/disrupt"},
		{name: "aws", path: "cloudprovider/aws", files: []string{"create.go", "fleet.go", "instances.go", "lost.go", "register.go", "settle.go"}},
	}
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
}

// suites are tried in this order: what is quick comes first. Random tests get one fixed seed, so that a second run says the same.
func suites() []*suite {
	rapid := []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.checks=40"}
	return []*suite{
		{name: "lifecycle", path: "internal/lifecycle", of: []string{"lifecycle"}},
		{name: "actuate", path: "internal/actuate", of: []string{"actuate"}},
		{name: "stories", path: "internal/plan", args: []string{"-test.run=TestStories"}, of: []string{"lifecycle", "plan", "disrupt"}},
		{name: "aws", path: "cloudprovider/aws", of: []string{"aws"}, args: []string{"-test.short"}},
		{name: "disrupt", path: "internal/disrupt", args: append([]string{"-test.short"}, rapid...), of: []string{"disrupt"}},
		{name: "plan", path: "internal/plan", slow: true, args: append([]string{"-test.short", "-test.skip=TestStories"}, rapid...), of: []string{"lifecycle", "plan", "disrupt"}},
		{name: "sim", path: "internal/sim", slow: true, args: []string{"-test.run=TestManySeeds", "-seeds=100", "-from=1"}, of: []string{"lifecycle", "actuate", "plan", "disrupt"}},
	}
}
