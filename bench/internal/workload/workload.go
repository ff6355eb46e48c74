// Package workload makes the work that solvers are given: pods, pools, a catalog and, in one case, a cluster that runs
// already. Everything is drawn from a seeded generator, so that each run of the benchmark, on any machine, asks the
// same.
//
// It is pure: the catalog is the one that is embedded in the repository, and nothing else is read.
package workload

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// Workload is one problem. Solvers must not change it: the same objects are given to all of them.
type Workload struct {
	Name string
	// Pods want a place.
	Pods []*corev1.Pod
	// Pools may be grown; each sells all of Types.
	Pools []*v1.NodePool
	Types []*cloudprovider.InstanceType
	// Nodes are there already and Running are the pods on them.
	Nodes   []*corev1.Node
	Running []*corev1.Pod
}

// Kind names a workload that can be made.
type Kind struct {
	Name string
	// Pods is how many want a place.
	Pods int
	fill func(*Workload, *rand.Rand, int)
	// few asks for the smaller catalog.
	few bool
}

// Kinds lists all workloads, the quick ones of each sort first.
func Kinds() []Kind {
	return []Kind{
		{Name: "diverse-100", Pods: 100, fill: diverse, few: true},
		{Name: "diverse-1000", Pods: 1000, fill: diverse, few: true},
		{Name: "diverse-5000", Pods: 5000, fill: diverse, few: true},
		{Name: "diverse-20000", Pods: 20000, fill: diverse, few: true},
		{Name: "preferences-4000", Pods: 4000, fill: preferences, few: true},
		{Name: "fleet-2000", Pods: 2000, fill: fleet},
		{Name: "fleet-20000", Pods: 20000, fill: fleet},
		{Name: "fleet-100000", Pods: 100000, fill: fleet},
		{Name: "memory-heavy", Pods: 2500, fill: memoryHeavy},
		{Name: "cpu-heavy", Pods: 2500, fill: cpuHeavy},
		{Name: "gpu-mix", Pods: 2500, fill: gpuMix},
		{Name: "arm-or-amd", Pods: 3000, fill: armOrAMD},
		{Name: "many-pools", Pods: 3000, fill: manyPools},
		{Name: "limits-bound", Pods: 3000, fill: limitsBound},
		{Name: "existing-2000", Pods: 5000, fill: existing},
	}
}

// Select lists the workloads whose names match, all of them if the pattern is empty.
func Select(pattern string) ([]Kind, error) {
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("read the pattern: %w", err)
	}
	var out []Kind
	for _, k := range Kinds() {
		if expression.MatchString(k.Name) {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no workload's name matches %q", pattern)
	}
	return out, nil
}

// Find gives the kind with the name.
func Find(name string) (Kind, error) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("there is no workload %q", name)
}

// Make draws the workload.
func (k Kind) Make() (*Workload, error) {
	types, err := sold(k.few)
	if err != nil {
		return nil, err
	}
	seed := fnv.New64a()
	seed.Write([]byte(k.Name))
	w := &Workload{Name: k.Name, Types: types, Pools: []*v1.NodePool{usualPool("default", types)}}
	k.fill(w, rand.New(rand.NewPCG(seed.Sum64(), 1)), k.Pods)
	return w, nil
}
