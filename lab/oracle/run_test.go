package oracle

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// worker generates clusters and checks what Tenon makes of them.
type worker struct {
	profile *config.KubeSchedulerProfile
	path    string
	placer  *placer
}

// check asks Tenon and replays its answer. A Tenon that crashes is started again.
func (k *worker) check(w *world, seed int) (*placement, []disagreement, error) {
	if k.placer == nil {
		p, err := startPlacer(k.path)
		if err != nil {
			return nil, nil, err
		}
		k.placer = p
	}
	p, err := k.placer.place(w)
	var dead crash
	switch {
	case errors.As(err, &dead):
		k.placer = nil
		return nil, []disagreement{{kind: broken, why: "crash", text: "Tenon ends without an answer: " + err.Error()}},
			nil
	case err != nil:
		return nil, nil, err
	}
	var found []disagreement
	for _, settled := range []*world{w.settled(), w.closed()} {
		found, err = (&replay{profile: k.profile, w: settled, p: p, seed: seed}).run()
		if err != nil || !slices.ContainsFunc(found, disagreement.grave) {
			break
		}
	}
	return p, found, err
}

// failure is a cluster in which Tenon and kube-scheduler differ.
type failure struct {
	seed  int
	found []disagreement
}

// results are shared by the workers.
type results struct {
	sync.Mutex
	tally    tally
	done     int
	failures []failure
	err      error
}

func TestPlacementsPassKubeSchedulersPlugins(t *testing.T) {
	clusters, first := number(t, "clusters"), number(t, "seed")
	profile, err := profile()
	if err != nil {
		t.Fatal(err)
	}
	path := buildPlacer(t)
	begin := time.Now()
	res := work(profile, path, first, clusters)
	if res.err != nil {
		t.Fatal(res.err)
	}
	t.Logf("%d clusters in %.1f s\n%s", res.done, time.Since(begin).Seconds(), res.tally)
	report(t, &worker{profile: profile, path: path}, res.failures)
	checkCoverage(t, res.tally, clusters)
}

func number(t *testing.T, name string) int {
	t.Helper()
	n, err := strconv.Atoi(setting(name))
	if err != nil {
		t.Fatalf("-%s: %v", name, err)
	}
	return n
}

// work spreads the seeds over the processors.
func work(profile *config.KubeSchedulerProfile, path string, first, clusters int) *results {
	res := &results{tally: tally{}}
	seeds := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			k := &worker{profile: profile, path: path}
			for seed := range seeds {
				k.one(seed, res)
			}
			if k.placer != nil {
				k.placer.stop()
			}
		})
	}
	last := time.Now()
	for i := range clusters {
		seeds <- first + i
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			res.Lock()
			fmt.Fprintf(os.Stderr, "oracle: %d of %d clusters, %d with disagreements\n", res.done, clusters,
				len(res.failures))
			res.Unlock()
		}
	}
	close(seeds)
	workers.Wait()
	return res
}

func (k *worker) one(seed int, res *results) {
	w, err := generate(k.profile, seed)
	var p *placement
	var found []disagreement
	if err == nil {
		p, found, err = k.check(w, seed)
	}
	res.Lock()
	defer res.Unlock()
	if err != nil {
		res.err = errors.Join(res.err, fmt.Errorf("seed %d: %w", seed, err))
		return
	}
	res.done++
	if p != nil {
		res.tally.count(w.settled(), p)
	}
	if len(found) > 0 {
		res.failures = append(res.failures, failure{seed, found})
	}
}

// sample is a sort of disagreement: how often it was found, and the first cluster that shows it.
type sample struct {
	disagreement
	count, seed int
}

// samples sorts the disagreements, the grave ones first.
func samples(failures []failure) []*sample {
	slices.SortFunc(failures, func(a, b failure) int { return a.seed - b.seed })
	known := make(map[string]*sample)
	var out []*sample
	for _, f := range failures {
		for _, d := range f.found {
			if known[d.sign()] == nil {
				known[d.sign()] = &sample{disagreement: d, seed: f.seed}
				out = append(out, known[d.sign()])
			}
			known[d.sign()].count++
		}
	}
	slices.SortStableFunc(out, func(a, b *sample) int {
		switch {
		case a.grave() == b.grave():
			return 0
		case a.grave():
			return -1
		}
		return 1
	})
	return out
}

// report counts the disagreements and shows the first of some sorts, made small. Those that are not grave only count,
// unless -strict asks for more.
func report(t *testing.T, k *worker, failures []failure) {
	strict, shown := setting("strict") == "true", 0
	for _, s := range samples(failures) {
		say := t.Errorf
		if !s.grave() && !strict {
			say = t.Logf
		}
		if shown >= number(t, "show") || !s.grave() && !strict {
			say("%d × %s; first in seed %d", s.count, s.sign(), s.seed)
			continue
		}
		shown++
		w, story := k.smallest(t, s.seed, s.sign())
		say("%d × %s; seed %d:\n%s\nThe cluster, made small:\n%s", s.count, s.sign(), s.seed, story, w.text())
	}
	t.Logf("%d clusters with disagreements", len(failures))
}

// smallest shrinks the cluster of a seed as long as it shows the same sort of disagreement.
func (k *worker) smallest(t *testing.T, seed int, sign string) (w *world, story string) {
	t.Helper()
	w, err := generate(k.profile, seed)
	if err != nil {
		t.Fatal(err)
	}
	w = shrink(w, func(w *world) bool {
		p, found, err := k.check(w, seed)
		if err != nil {
			return false
		}
		for _, d := range found {
			if d.sign() == sign {
				story = d.String() + "\n" + p.text()
				return true
			}
		}
		return false
	})
	return w, story
}
