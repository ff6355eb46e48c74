package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// tally is what many runs came to. One is a line of the file that soaks are counted in.
type tally struct {
	mu sync.Mutex

	When       time.Time      `json:"when"`
	Commit     string         `json:"commit"`
	From       uint64         `json:"from"`
	Seeds      int            `json:"seeds"`
	Violations []uint64       `json:"violations"` // the seeds
	Events     int            `json:"events"`
	Time       time.Duration  `json:"virtual"`
	Seen       map[string]int `json:"seen"`
}

func newTally() *tally { return &tally{Seen: make(map[string]int)} }

// add counts one run.
func (c *tally) add(r Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Seeds++
	c.Events += r.Events
	c.Time += r.Time
	for what, n := range r.Seen {
		c.Seen[what] += n
	}
	if r.Failure != nil {
		c.Violations = append(c.Violations, r.Failure.Seed)
	}
}

// join adds another count to this one.
func (c *tally) join(o *tally) {
	c.Seeds, c.Events, c.Time = c.Seeds+o.Seeds, c.Events+o.Events, c.Time+o.Time
	c.Violations = append(c.Violations, o.Violations...)
	for what, n := range o.Seen {
		c.Seen[what] += n
	}
}

// excessive tells what the judge has forgiven, and gives back what there is too much of.
func (c *tally) excessive(tell func(string, ...any)) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, e := range Excuses(c.Seen) {
		tell("%s", e.String())
		if e.Excessive() {
			out = append(out, "the judge forgives too much: "+e.String())
		}
	}
	return out
}

// every is how many seeds a soak plays before it writes its count down: one that is killed loses no more.
const every = 500

// TestSoak plays seeds until it is told to stop, if it is asked to; otherwise a handful. With -tally it adds what it
// has played to a file, a line of JSON at a time, and tells the total.
func TestSoak(t *testing.T) {
	f := flags()
	last := f.from + 20
	if f.soak {
		last = 1 << 62
	}
	began, told := time.Now(), time.Now()
	var mu sync.Mutex
	var at, stop atomic.Uint64
	at.Store(f.from - 1)
	if f.soak {
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
		go func() {
			<-interrupted
			stop.Store(1)
		}()
	}
	count, all := newTally(), newTally()
	write := func() {
		if err := count.append(f.tally, f.from); err != nil {
			t.Error(err)
		}
		all.join(count)
		count = newTally()
	}
	play(Options{Adversary: f.adversary}, func() (uint64, bool) {
		seed := at.Add(1)
		return seed, seed < last && stop.Load() == 0
	}, func(seed uint64, r Result) {
		mu.Lock()
		defer mu.Unlock()
		count.add(r)
		if r.Failure != nil {
			fmt.Println(r.Failure)
			t.Fail()
		}
		if count.Seeds >= every {
			write()
		}
		if f.soak && time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Printf("soak: seed=%d failed=%d seeds_per_s=%.0f\n", seed, len(all.Violations)+len(count.Violations),
				float64(seed-f.from)/time.Since(began).Seconds())
		}
	})
	write()
	for _, line := range all.excessive(t.Logf) {
		t.Error(line)
	}
	if f.tally != "" {
		tellTotal(t, f.tally)
	}
}

// append adds the count to a file; an empty name is none.
func (c *tally) append(file string, from uint64) error {
	if file == "" || c.Seeds == 0 {
		return nil
	}
	c.When, c.From, c.Commit = time.Now().UTC().Truncate(time.Second), from, commit()
	for what := range c.Seen { // what has happened how often is not part of the count
		if !strings.HasPrefix(what, excusedBy) && !strings.HasPrefix(what, askedFor) {
			delete(c.Seen, what)
		}
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return errors.Join(err, out.Close())
}

// commit is what is being tested, with a mark if it has been changed.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=10", "--match", "none").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// tellTotal says what a file of counts comes to, by commit and in all.
func tellTotal(t *testing.T, file string) {
	t.Helper()
	total, byCommit, commits, err := readTally(file)
	if err != nil {
		t.Error(err)
		return
	}
	for _, c := range commits {
		t.Logf("%s: %d seeds, %d violations", c, byCommit[c].Seeds, len(byCommit[c].Violations))
	}
	t.Logf("in all: %d seeds, %d violations, %s of virtual time", total.Seeds, len(total.Violations),
		total.Time.Round(time.Hour))
	total.excessive(t.Logf)
}

// readTally reads a file of counts.
func readTally(file string) (total *tally, byCommit map[string]*tally, commits []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, nil, err
	}
	total, byCommit = newTally(), make(map[string]*tally)
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		one := newTally()
		if err := json.Unmarshal([]byte(line), one); err != nil {
			return nil, nil, nil, fmt.Errorf("%s:%d is not a count that TestSoak has written: %w", file, n+1, err)
		}
		if byCommit[one.Commit] == nil {
			byCommit[one.Commit] = newTally()
			commits = append(commits, one.Commit)
		}
		byCommit[one.Commit].join(one)
		total.join(one)
	}
	return total, byCommit, commits, nil
}

func TestTallyAddsUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "soak", "tally.jsonl")
	const promise = "limits are never exceeded"
	for i := range 3 {
		c := newTally()
		c.add(Result{Events: 10, Time: time.Minute, Seen: map[string]int{"Fence": 4, askedFor + promise: 1000,
			excusedBy + promise + ": " + cutOff: 2}})
		if i == 2 {
			c.add(Result{Failure: &Failure{Seed: 77}})
		}
		if err := c.append(file, 1); err != nil {
			t.Fatal(err)
		}
	}
	total, _, _, err := readTally(file)
	if err != nil {
		t.Fatal(err)
	}
	if total.Seeds != 4 || total.Events != 30 || total.Time != 3*time.Minute || len(total.Violations) != 1 ||
		total.Violations[0] != 77 {
		t.Errorf("the total is %+v", total)
	}
	list := Excuses(total.Seen)
	if len(list) != 1 || list[0].Count != 6 || list[0].Asked != 3000 || list[0].Promise != promise ||
		list[0].Name != cutOff {
		t.Errorf("the excuses are %+v", list)
	}
	if _, there := total.Seen["Fence"]; there {
		t.Error("what has been done is in the count, which would make it long")
	}
}

func TestTooManyExcusesFail(t *testing.T) {
	const asked = 100000
	most := int(asked * mostOfAny)
	for _, x := range []struct {
		name         string
		asked, count int
		fails        bool
	}{
		{"twice as many as there may be", asked, 2 * most, true}, {"as many as there may be", asked, most, false},
		{"a few more, as happens", asked, most + most/5, false}, {"one in a short run, as happens", 100, 1, false},
		{"many in a short run", 100, 5, true},
	} {
		c := newTally()
		c.add(Result{Seen: map[string]int{askedFor + "p": x.asked, excusedBy + "p: q": x.count}})
		if got := c.excessive(t.Logf); (len(got) > 0) != x.fails {
			t.Errorf("%s (%d of %d): %v", x.name, x.count, x.asked, got)
		}
	}
}
