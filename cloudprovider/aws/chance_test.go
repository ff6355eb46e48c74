package aws_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestByChance does what can happen to a controller in random order and all at the same time: answers get lost, EC2 is
// busy or slow or broken or sold out and shows instances late and one after the other, looks come between, what was
// answered is not written down, callers give up, claims and instances go, the controller dies and another takes over.
// Whatever happens, no instance is given to two claims, no claim has two once things have settled, and nothing is left
// over.
func TestByChance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(drawAct), 2, 12).Draw(rt, "acts")
		var d *drama
		synctest.Test(t, func(t *testing.T) {
			d = newDrama(t)
			defer time.Sleep(15 * time.Minute)
			d.play(script)
		})
		if failures := d.failed(); len(failures) > 0 {
			rt.Fatalf("%s\nit was:\n%s", strings.Join(failures, "\n"), strings.Join(d.log, "\n"))
		}
	})
}

// TestFoundByChance plays what chance has once found to go wrong.
func TestFoundByChance(t *testing.T) {
	t.Parallel()
	for name, script := range map[string][]act{
		// A launch waited for its turn, its callers gave up and came again, and were refused by another launch. The
		// first one launched instances for claims that were gone.
		"callers who have left": {
			{"throttle", 2, 4, 7243 * time.Millisecond}, {"launch", 3, 1, 4 * time.Millisecond}, {"look", 6, 3, 0},
			{"crisis", 3, 6, 535 * time.Millisecond},
			{"look", 4, 0, 49 * time.Millisecond}, {"launch", 0, 2, 39356 * time.Millisecond},
			{"give up", 1, 6, 3620 * time.Millisecond},
			{"crisis", 4, 5, 23346 * time.Millisecond}, {"launch", 2, 3, 207 * time.Millisecond},
			{"break", 6, 6, 34870 * time.Millisecond},
			{"crisis", 4, 2, 1667 * time.Millisecond}, {"refuse", 5, 0, 3 * time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDrama(t)
				defer time.Sleep(15 * time.Minute)
				d.play(script)
				if failures := d.failed(); len(failures) > 0 {
					t.Errorf("%s\nit was:\n%s", strings.Join(failures, "\n"), strings.Join(d.log, "\n"))
				}
			})
		})
	}
}

// act is something that happens. What n, m and by mean depends on what it is.
type act struct {
	what string
	n, m int
	by   time.Duration
}

func drawAct(t *rapid.T) act {
	return act{
		what: rapid.SampledFrom(slices.Concat(
			slices.Repeat([]string{"launch", "crisis"}, 4), slices.Repeat([]string{"pass", "look"}, 2),
			[]string{"want", "lose"},
			[]string{"restart", "scarce", "slow", "break", "refuse", "throttle", "give up", "kill", "collect"})).Draw(t,
			"what"),
		n:  rapid.IntRange(0, 6).Draw(t, "n"),
		m:  rapid.IntRange(0, 6).Draw(t, "m"),
		by: time.Duration(rapid.IntRange(0, 45_000).Draw(t, "ms")) * time.Millisecond,
	}
}

// play does the acts, ends all trouble, and looks what has become of everything.
func (d *drama) play(script []act) {
	for _, a := range script {
		d.note("%s: %s %d %d %s", time.Now().Format("04:05.000"), a.what, a.n, a.m, a.by)
		d.do(a)
	}
	d.settle()
}

func (d *drama) do(a act) {
	switch a.what {
	case "want":
		d.want(1+a.n, a.m)
	case "launch":
		d.launch(1+a.n, a.m, time.Second+a.by, 4)
	case "crisis":
		d.crisis(a)
	case "pass":
		time.Sleep(a.by / 5)
	case "look":
		d.census()
	case "restart":
		d.restart()
	case "scarce":
		d.scarce(a.n)
	case "give up":
		d.giveUp(a.n)
	case "kill":
		d.kill(a.n)
	case "collect":
		d.collect()
	default:
		d.mishap(a)
	}
}

// crisis has claims launched together while something goes wrong, and what comes after it come before EC2 shows
// everything.
func (d *drama) crisis(a act) {
	d.want(2+a.n, a.m)
	keep := 4
	switch a.m {
	case 0: // the process dies before anything is written down
		keep = 0
	case 1:
		d.scarce(a.n)
		fallthrough
	case 2, 3:
		d.mishap(act{what: "lose", n: 2})
	case 4:
		d.mishap(act{what: "lose"})
		d.mishap(act{what: "throttle", n: 1})
	case 5:
		d.mishap(act{what: "lose"})
		d.mishap(act{what: "refuse", n: 1})
	case 6:
		d.mishap(act{what: "slow", by: a.by})
	}
	d.launch(len(d.parts), 0, time.Second+a.by, keep)
	time.Sleep(2*time.Second + a.by/10)
	if a.m == 0 {
		d.restart()
	} else {
		d.census()
	}
}

// settle has everybody launched who still wants to be, and counts.
func (d *drama) settle() {
	d.note("the end")
	d.w.faults.Clear()
	d.w.sim.World.ClearCapacity()
	time.Sleep(time.Minute) // until the last who is being launched has an answer, or has given up
	for round := 0; len(d.waiting()) > 0; round++ {
		if round == 20 {
			d.fail("%d claims never get an instance", len(d.waiting()))
			return
		}
		d.launch(len(d.parts), 0, time.Minute, 100)
		time.Sleep(time.Minute)
	}
	time.Sleep(3 * time.Minute)
	d.calm = true
	owners := map[string]string{}
	for _, i := range d.census() {
		if before := owners[i.ClaimUID]; before != "" && i.ClaimUID != "" && d.live(i.ClaimUID) {
			d.fail("%s has %s and %s", i.ClaimName, before, i.ProviderID)
		}
		owners[i.ClaimUID] = i.ProviderID
	}
	d.collect()
	if d.orphans > d.gone {
		d.fail("%d claims were given up, and %d instances turned out to be nobody's", d.gone, d.orphans)
	}
	alive := map[string]bool{}
	for _, i := range d.w.alive() {
		alive["aws:///"+i.Zone+"/"+i.ID] = true
	}
	for _, p := range d.parts {
		if p.id != "" && !alive[p.id] && !d.killed[p.id] {
			d.fail("%s of %s does not run", p.id, p.claim.Name)
		}
		delete(alive, p.id)
	}
	if len(alive) > 0 {
		d.fail("EC2 runs what is nobody's: %v", alive)
	}
}

func (d *drama) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

func (d *drama) fail(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures = append(d.failures, fmt.Sprintf(format, args...))
}

func (d *drama) failed() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failures
}
