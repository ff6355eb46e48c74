package sim

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ordinaryHours is how many simulated hours an ordinary test run plays.
const ordinaryHours = 60

// TestRunaway plays hours in which an agent makes every new node useless, and holds the program to its bound on nodes
// in vain.
//
//	go test ./internal/sim -run TestRunaway -seeds 2000
//	go test ./internal/sim -run TestRunaway -from 5000 -seeds 100   another hundred
//	go test ./internal/sim -run TestRunaway -seed 17 -v             one of them again, with its history
func TestRunaway(t *testing.T) {
	from, count := hoursToPlay(flags())
	began := time.Now()
	var at, failed atomic.Int64
	var mu sync.Mutex
	var worst []hour
	at.Store(int64(from) - 1)
	playWith(func() (uint64, bool) {
		seed := at.Add(1)
		return uint64(seed), uint64(seed) < from+count && failed.Load() < 5
	}, func(seed uint64) {
		o := Options{}
		if count == 1 && testing.Verbose() {
			o.Tell = func(line string) { fmt.Println(line) }
		}
		h := runHour(seed, o)
		mu.Lock()
		defer mu.Unlock()
		worst = append(worst, h)
		if h.failure != nil {
			failed.Add(1)
			t.Error(h.failure)
		}
	})
	tellHours(t, worst, count)
	t.Logf("%d hours in %s", count, time.Since(began).Round(time.Millisecond))
}

// hoursToPlay are the first seed and how many: one if a seed is asked for, or else from the one that is, or the
// ordinary ones.
func hoursToPlay(f wanted) (from, count uint64) {
	from, count = f.from, ordinaryHours
	if f.asked["seeds"] {
		count = f.seeds
	}
	if f.asked["seed"] {
		from, count = f.seed, 1
	}
	return from, count
}

func TestHoursThatAreAskedForArePlayed(t *testing.T) {
	for _, x := range []struct {
		asked       []string
		from, count uint64
	}{
		{nil, 300, ordinaryHours},
		{[]string{"from"}, 300, ordinaryHours},
		{[]string{"from", "seeds"}, 300, 1},
		{[]string{"seeds"}, 300, 1},
		{[]string{"seed"}, 17, 1},
		{[]string{"seed", "seeds"}, 17, 1},
	} {
		f := wanted{seed: 17, from: 300, seeds: 1, asked: make(map[string]bool)}
		for _, name := range x.asked {
			f.asked[name] = true
		}
		if from, count := hoursToPlay(f); from != x.from || count != x.count {
			t.Errorf("with the flags %v: %d hours from %d, want %d from %d", x.asked, count, from, x.count, x.from)
		}
	}
}

// tellHours tells, for each kind of agent, how close to the bounds the hours came.
func tellHours(t *testing.T, all []hour, count uint64) {
	t.Helper()
	shown := len(slices.DeleteFunc(slices.Clone(all), func(h hour) bool { return !h.leftUnused }))
	t.Logf("in %d hours a node stood for the pods when the agent took back what it did", shown)
	if shown == 0 && count >= ordinaryHours {
		t.Errorf("in %d hours no node stood to show that the cause had gone", count)
	}
	for _, kind := range nodeAgents() {
		of := slices.DeleteFunc(slices.Clone(all), func(h hour) bool { return h.kind != kind })
		if len(of) == 0 {
			if count >= ordinaryHours {
				t.Errorf("in %d hours no agent of the kind %q", count, kind)
			}
			continue
		}
		most := slices.MaxFunc(of, func(a, b hour) int { return a.launched - b.launched })
		spare := slices.MinFunc(of, func(a, b hour) int { return a.spare - b.spare })
		harm := len(slices.DeleteFunc(slices.Clone(of), func(h hour) bool { return h.launched <= h.wanted }))
		spent := slices.MaxFunc(of, func(a, b hour) int { return cmp.Compare(a.spent, b.spent) })
		if harm == 0 && count >= ordinaryHours {
			t.Errorf("in %d hours no agent of the kind %q brought about more launches than its victims need nodes: "+
				"it tests nothing", len(of), kind)
		}
		late := slices.MaxFunc(of, func(a, b hour) int { return int(a.recovered - b.recovered) })
		t.Logf("%-16s %4d hours, %d of them with more launches than nodes needed; unused nodes cost at most %.0f %% "+
			"of what they may (seed %d)",
			kind, len(of), harm, 100*spent.spent, spent.seed)
		t.Logf("%-16s %4d hours; launched at most %d (seed %d, %d nodes needed); "+
			"closest to the bound by %d (seed %d); pods ran %s after its end at the latest (seed %d)",
			kind, len(of), most.launched, most.seed, most.wanted, spare.spare, spare.seed,
			late.recovered.Round(time.Second), late.seed)
	}
}

// hour is what came of one of them.
type hour struct {
	seed       uint64
	kind       string
	failure    *Failure
	launched   int     // machines for the owner that got most
	wanted     int     // the nodes that its pods need
	spare      int     // how far below the bound
	spent      float64 // what unused nodes cost, as a part of what they may
	recovered  time.Duration
	leftUnused bool // a node stood for the pods when the agent ended, and took them
}

func runHour(seed uint64, o Options) hour {
	s := newSim(seed, o)
	h := hour{seed: seed}
	a := s.prepareHour()
	h.kind = a.kind
	s.start()
	begin := s.clock.now
	s.clock.runUntil(begin.Add(time.Hour), s.over)
	v := s.judge.unused
	if s.failure == nil {
		h.recovered = s.recover(a)
	}
	h.spare = 1 << 30
	for _, owner := range v.owners() {
		a := v.of[owner]
		h.spare, h.spent = min(h.spare, v.allowed(owner, begin)-a.most), max(h.spent, a.dearest/v.mayCost())
		if len(a.launched) >= h.launched {
			h.launched, h.wanted = len(a.launched), v.needs(owner, begin)
		}
	}
	h.leftUnused = s.seen["witness"] > 0
	for len(s.replicas) > 0 {
		s.replicas[0].kill()
	}
	h.failure = s.failure
	return h
}
