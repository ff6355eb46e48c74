package static

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/render"
)

// asked tells which slots and tries a static pool asks for, how many nodes rest, and when it looks again.
func asked(f *disrupttest.Fleet) string {
	r := KeepReplicas(f.S.Seal(), f.Set.Schedule)
	var out []string
	for _, c := range r.Commands {
		if c, ok := c.(command.CreateClaim); ok {
			out = append(out, cluster.FormatSlot(c.Slot))
		}
	}
	for _, n := range r.Notes {
		if !n.Warning {
			out = append(out, "nobody is warned")
		}
		out = append(out, n.Reason+" "+render.Text(n.Text))
	}
	if !r.WakeAt.IsZero() {
		out = append(out, "again in "+r.WakeAt.Sub(f.Now).String())
	}
	return strings.Join(out, "; ")
}

// A slot whose nodes end too soon waits for its next one, and the wait is nobody else's.
func TestSlotsThatLoseTheirNodesWait(t *testing.T) {
	lost := func(number, tries int, wait time.Duration) func(*disrupttest.Fleet) {
		return func(f *disrupttest.Fleet) {
			f.Pool.LostSlots = append(f.Pool.LostSlots, cluster.LostSlot{Number: number, Tries: tries,
				Next: f.Now.Add(wait), EndedBy: "an expireAfter of 10s"})
		}
	}
	const said = "nodes of the pool end within 10m0s, so new ones are created less and less often; the last one was " +
		"ended by an expireAfter of 10s"
	f := disrupttest.StaticFleet(4)
	next := func(wait time.Duration) string { return f.Now.Add(wait).UTC().Format(time.RFC3339) }
	for _, c := range []struct {
		name   string
		asks   int64
		change []func(*disrupttest.Fleet)
		want   string
	}{
		{"nothing is known", 5, nil, "0=1; 1=1"},
		{"one may be made now", 4, []func(*disrupttest.Fleet){lost(2, 1, 0)}, "2=2"},
		{"one waits", 4, []func(*disrupttest.Fleet){lost(2, 2, time.Minute)},
			"StaticCapacityBlocked 1 of 4 nodes are missing: " + said + ". The next is created at " +
				next(time.Minute) + "; again in 1m0s"},
		{"one waits and another never was", 5, []func(*disrupttest.Fleet){lost(0, 2, time.Minute)},
			"1=1; StaticCapacityBlocked 1 of 5 nodes are missing: " + said + ". The next is created at " +
				next(time.Minute) + "; again in 1m0s"},
		{"of two that wait the first is told", 5, []func(*disrupttest.Fleet){lost(0, 2, time.Minute),
			lost(1, 3, time.Second)},
			"StaticCapacityBlocked 2 of 5 nodes are missing: " + said + ". The next is created at " +
				next(time.Second) + "; again in 1s"},
		{"more wait than are missing", 4, []func(*disrupttest.Fleet){lost(0, 2, time.Minute), lost(1, 2, time.Minute)},
			"StaticCapacityBlocked 1 of 4 nodes are missing: " + said + ". The next is created at " +
				next(time.Minute) + "; again in 1m0s"},
		{"it is taken again", 4, []func(*disrupttest.Fleet){lost(1, 2, time.Minute), func(f *disrupttest.Fleet) {
			f.Claim("n1").Slot = cluster.Slot{Number: 1, Try: 3}
		}}, "0=1; again in 1m0s"},
		{"a young one is just going", 4, []func(*disrupttest.Fleet){func(f *disrupttest.Fleet) {
			f.Claim("n1").Slot, f.Claim("n1").Created = cluster.Slot{Number: 0, Try: 1}, f.Now
			f.S.InFlight["delete/n1"] = true
		}}, "1=1"},
		{"a young one stays", 4, []func(*disrupttest.Fleet){func(f *disrupttest.Fleet) {
			f.Claim("n1").Slot, f.Claim("n1").Created = cluster.Slot{Number: 0, Try: 1}, f.Now
		}}, "1=1"},
		{"a young one that fills no slot is just going", 4, []func(*disrupttest.Fleet){func(f *disrupttest.Fleet) {
			f.Claim("n1").Created = f.Now
			f.S.InFlight["delete/n1"] = true
		}}, "0=1; 1=1"},
		{"a young one is seen to go", 4, []func(*disrupttest.Fleet){func(f *disrupttest.Fleet) {
			f.Claim("n1").Slot, f.Claim("n1").Created, f.Claim("n1").Deleting = cluster.Slot{Number: 0, Try: 1},
				f.Now, f.Now
			f.S.InFlight["delete/n1"] = true
		}}, "0=1; 1=1"},
		{"an old one is just going", 4, []func(*disrupttest.Fleet){func(f *disrupttest.Fleet) {
			f.Claim("n1").Slot, f.Claim("n1").Created = cluster.Slot{Number: 0, Try: 1}, f.Now.Add(-cluster.ShortLife)
			f.S.InFlight["delete/n1"] = true
		}}, "1=1; 2=1"},
	} {
		f := disrupttest.StaticFleet(c.asks)
		for _, change := range c.change {
			change(f)
		}
		if got := asked(f); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// However many claims of a slot are still on their way out, its next one is of the same slot.
func TestSlotsHaveNamesForAllTheirClaims(t *testing.T) {
	f := disrupttest.StaticFleet(4)
	f.Pool.LostSlots = []cluster.LostSlot{{Number: 0, Tries: 30}}
	names := make(map[string]bool)
	for try := range 30 {
		at := SlotsOf(f.S.Seal(), f.Pool).takeSlots(1)[0]
		if names[at.Name] || at.Number != 0 {
			t.Fatalf("try %d is %+v, after %d names", try, at, len(names))
		}
		names[at.Name] = true
		f.S.Claims = append(f.S.Claims, &cluster.Claim{Name: at.Name, Pool: "default", Slot: at.Slot, Deleting: f.Now})
	}
}

// What is made in place of drifted nodes takes no slot that is to have its next node.
func TestMovesTakeNoLostSlots(t *testing.T) {
	f := disrupttest.StaticFleet(4)
	f.Pool.LostSlots = []cluster.LostSlot{{Number: 0, Tries: 1}, {Number: 2, Tries: 4, Next: f.Now.Add(time.Minute)}}
	got := fmt.Sprint(SlotsOf(f.S.Seal(), f.Pool).NewSlots(3))
	for _, want := range []string{"{1 1}", "{3 1}", "{4 1}"} {
		if !strings.Contains(got, want) {
			t.Errorf("slots %s, want %s among them", got, want)
		}
	}
}

// People are told of the slot that has lost its nodes most often, and what to do if nobody knows who ends them.
func TestWhatIsSaidOfSlotsThatLoseTheirNodes(t *testing.T) {
	a, b := cluster.LostSlot{Number: 1, Tries: 1, EndedBy: "Anna"}, cluster.LostSlot{Number: 2, Tries: 3,
		EndedBy: "Bert"}
	for _, list := range [][]cluster.LostSlot{{a, b}, {b, a}} {
		if got := render.Text(DescribeShortLived(list)); !strings.HasSuffix(got, "the last one was ended by Bert") {
			t.Errorf("%q, want Bert's name", got)
		}
	}
	if got := render.Text(DescribeShortLived([]cluster.LostSlot{{Number: 1, Tries: 1}})); !strings.Contains(got,
		"find out who ends them") {
		t.Errorf("%q, want what to do", got)
	}
}
