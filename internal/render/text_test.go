package render

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
)

func TestTexts(t *testing.T) {
	at := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	for want, text := range map[string]reason.Text{
		"":   {},
		"a":  reason.Said("a"),
		"a%": reason.Said("a%"),
		"a; b; c": reason.Join(reason.Text{}, reason.Said("a"), reason.Text{}, reason.Said("b"), reason.Said("c"),
			reason.Said("")),
		"no instance could be launched within 5m0s": reason.Of(reason.NotLaunched, 5*time.Minute),
		"All pods will be deleted by 2030-01-31T12:00:00Z": reason.Of(reason.PodsDeletedBy,
			at.In(time.FixedZone("x", 3600))),
		"the cloud has refused its launches; the next try is at 12:00:00 UTC": reason.Of(reason.LaunchesRefusedUntil,
			reason.Clock(at)),
		"Finding places for pods failed, which is a mistake in Tenon: boom. It is left out until " +
			"2030-01-31T12:00:00Z; everything else goes on": reason.Of(reason.PartFailed, cluster.Placing, "boom", at),
		"a: node n is cordoned": reason.Of(reason.About, "a", &cluster.UnusedNode{Node: "n",
			Cause: cluster.Cause{Kind: cluster.CauseCordon}}),
	} {
		if got := Text(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Each code has words, whatever its arguments are.
func TestEachCodeHasWords(t *testing.T) {
	for code := reason.Nothing + 1; code < reason.Count; code++ {
		if text := format(code); text == "" || strings.HasSuffix(text, ".") || strings.Contains(text, "  ") {
			t.Errorf("code %d: %q", code, text)
		}
	}
}

// A condition says what it should if its status, its reason and its words are the same.
func TestSays(t *testing.T) {
	want := command.Condition{Type: "T", Status: cluster.True, Reason: "R", Text: reason.Said("a")}
	if is := Condition(want); !Says(is, want) {
		t.Errorf("%+v does not say %+v", is, want)
	}
	for _, is := range []cluster.Condition{{Status: cluster.False, Reason: "R", Message: "a"},
		{Status: cluster.True, Reason: "S", Message: "a"}, {Status: cluster.True, Reason: "R", Message: "b"}} {
		if Says(is, want) {
			t.Errorf("%+v says %+v", is, want)
		}
	}
}

// Conditions are compared with what they should say at each plan.
func TestATextCostsLittle(t *testing.T) {
	text := reason.Of(reason.NodeDeleted, "n")
	if allocs := testing.AllocsPerRun(100, func() { _ = Text(text) }); allocs > 4 {
		t.Errorf("%v allocations", allocs)
	}
}
