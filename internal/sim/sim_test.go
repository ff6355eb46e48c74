package sim

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ordinary is how many histories an ordinary test run plays.
const ordinary = 2000

// wanted are the flags of this package's tests.
type wanted struct {
	seed, from, seeds uint64
	soak, digest      bool
	adversary, tally  string
	asked             map[string]bool // which of them were given
}

// flags reads the flags; they are registered by TestMain, which is the only place that may.
func flags() wanted {
	get := func(name string) uint64 { return flag.Lookup(name).Value.(flag.Getter).Get().(uint64) }
	on := func(name string) bool { return flag.Lookup(name).Value.(flag.Getter).Get().(bool) }
	text := func(name string) string { return flag.Lookup(name).Value.String() }
	asked := make(map[string]bool)
	flag.Visit(func(set *flag.Flag) { asked[set.Name] = true })
	return wanted{asked: asked, seed: get("seed"), from: get("from"), seeds: get("seeds"),
		soak: on("soak"), digest: on("digest"), adversary: text("adversary"), tally: text("tally")}
}

func TestMain(m *testing.M) {
	flag.Uint64("seed", 1, "the seed that TestSeed plays, or TestRunaway")
	flag.Uint64("from", 1, "the first seed of TestManySeeds, TestRunaway and TestSoak")
	flag.Uint64("seeds", ordinary, "how many seeds TestManySeeds plays, or TestRunaway")
	flag.Bool("soak", false, "let TestSoak play seeds without end")
	flag.String("adversary", "", "the only adversary that TestSeed and TestManySeeds let come")
	flag.String("tally", "", "the file that TestSoak adds its count to")
	flag.Bool("digest", false,
		"let TestManySeeds log a digest of all histories: it stays the same while no decision changes")
	debug.SetGCPercent(3200) // a run makes much garbage and keeps little
	m.Run()
}

// play plays seeds on all cores until next has none left or enough have failed.
func play(o Options, next func() (uint64, bool), done func(uint64, Result)) {
	playWith(next, func(seed uint64) { done(seed, Run(seed, o)) })
}

// playWith is play with another way to play a seed.
func playWith(next func() (uint64, bool), run func(uint64)) {
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				seed, ok := next()
				if !ok {
					return
				}
				run(seed)
			}
		})
	}
	workers.Wait()
}

func TestManySeeds(t *testing.T) {
	f := flags()
	began := time.Now()
	count := newTally()
	var at, failed atomic.Int64
	at.Store(int64(f.from) - 1)
	var histories atomic.Uint64
	playWith(func() (uint64, bool) {
		seed := at.Add(1)
		return uint64(seed), uint64(seed) < f.from+f.seeds && failed.Load() < 5
	}, func(seed uint64) {
		o := Options{Adversary: f.adversary}
		history := fnv.New64a()
		if f.digest {
			o.Tell = func(line string) { fmt.Fprintln(history, seed, line) }
		}
		r := Run(seed, o)
		histories.Add(history.Sum64())
		count.add(r)
		if r.Failure != nil {
			failed.Add(1)
			t.Error(r.Failure)
		}
	})
	if f.digest {
		t.Logf("digest %016x", histories.Load())
	}
	took := time.Since(began)
	t.Logf("%d seeds in %s (%.0f a second), %s of virtual time, %d events", count.Seeds, took.Round(time.Millisecond),
		float64(count.Seeds)/took.Seconds(), count.Time.Round(time.Second), count.Events)
	for _, what := range slices.Sorted(maps.Keys(count.Seen)) {
		if !strings.HasPrefix(what, excusedBy) && !strings.HasPrefix(what, askedFor) {
			t.Logf("%8d %s", count.Seen[what], what)
		}
	}
	for _, line := range count.excessive(t.Logf) {
		t.Error(line)
	}
	if f.seeds < 1000 || f.adversary != "" {
		return
	}
	for _, what := range everything() {
		if count.Seen[what] == 0 {
			t.Errorf("in %d seeds no %s: the simulation does not test what it should", f.seeds, what)
		}
	}
}

// everything is what must happen in some seed: each kind of command, and each fault.
func everything() []string {
	out := []string{"CreateClaim", "Nominate", "Bind", "LaunchInstance", "Register", "Initialize", "Open", "Fence",
		"Unfence", "DeleteClaim", "DeleteNode",
		"Evict", "Terminate", "Release", "Adopt", "SetPool", "SetClaim", "WritePoolHash", "WriteClaimHash",
		"Fence Underutilized", "Fence Drifted", "Fence Interrupted", "DeleteClaim Interrupted",
		"DeleteClaim Underutilized", "DeleteClaim Drifted", "replacement", "nomination lost",
		"departure by a budget with reasons", "departure by a budget with a window", "preempted",
		"node made without a DaemonSet that fits nowhere", "node made although DaemonSets fill it"}
	for _, f := range (&Sim{}).faults() {
		out = append(out, "fault "+f.name)
	}
	for _, a := range (&Sim{}).adversaries() {
		out = append(out, "adversary "+a.name)
	}
	for _, name := range []string{"timeoutBefore", "timeoutAfter", "tooMany", "internal", "conflict", "throttled",
		"launchError", "cloudAnswerLost",
		"neverComes", "bare", "stuckPod", "slowPlans"} {
		out = append(out, "fault "+name)
	}
	return out
}

// TestSeed plays one seed and, with -v, tells its history.
func TestSeed(t *testing.T) {
	f := flags()
	o := Options{Adversary: f.adversary}
	if testing.Verbose() {
		o.Tell = func(line string) { fmt.Println(line) }
	}
	if r := Run(f.seed, o); r.Failure != nil {
		t.Error(r.Failure)
	}
}

func TestSameSeedSameHistory(t *testing.T) {
	for seed := range uint64(25) {
		one, other := Run(seed, Options{}), Run(seed, Options{})
		if one.Hash != other.Hash || one.Events != other.Events {
			t.Errorf("seed %d: %d events with hash %x, and then %d with %x", seed, one.Events, one.Hash, other.Events,
				other.Hash)
		}
	}
}

// TestShortcut compares the API server's shortcut for merge patches with the long way, by text.
func TestShortcut(t *testing.T) {
	for seed := uint64(100); seed < 115; seed++ {
		one, other := Run(seed, Options{}), Run(seed, Options{SlowPatches: true})
		if one.Hash != other.Hash || one.Events != other.Events {
			t.Errorf("seed %d: %d events with the shortcut, %d without, or other ones", seed, one.Events, other.Events)
		}
	}
}
