// Package oracle holds Tenon's placements against kube-scheduler's own filter plugins, over generated clusters.
//
// Each pod must pass on the node it was given, existing or new, and a pod that was not given an existing node must be
// refused by every one of them. It is made of tests only: the lab's executable does not contain it. Tenon itself runs
// in another process (internal/oracle of the root module), because the two modules are built with different versions of
// Kubernetes.
//
// Beyond that it counts two things that are no disagreement but worth knowing (-strict makes them failures): pods left
// without a place though one more node would take them, and placements that hold only if kube-scheduler happens to take
// up some pods before others.
//
//	go test ./oracle                              # a thousand clusters
//	go test ./oracle -clusters 5000 -seed 1       # seeds 1 to 5000
//	go test ./oracle -clusters 1 -seed 4711 -v    # one again
//
// Replaying is small next to building Kubernetes' scheduler, which takes some minutes the first time.
package oracle

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Int("clusters", enoughClusters, "how many clusters to generate")
	flag.Int("seed", 1, "seed of the first cluster; the others follow")
	flag.Int("show", 3, "how many sorts of disagreement to make small and show in full; the others are counted")
	flag.Bool("strict", false, "fail also if a pod was left without a place that one more node would give it, or if "+
		"the order of pods matters")
	flag.String("placer", "", "ready-made Tenon side of the oracle, instead of building it")
	flag.Parse()
	os.Exit(m.Run())
}

// setting is the value of a flag.
func setting(name string) string { return flag.Lookup(name).Value.String() }
