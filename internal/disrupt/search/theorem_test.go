package search_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/search"
)

var clusters = flag.Int("clusters", 400, "how many generated clusters the theorem is tried on")

// The theorem of the fixed point. While pods, prices and pools stay as they are, every move of a consolidation makes
// the cluster cheaper by at least what its pools ask for, whichever of the types that it keeps the cloud hands out.
// Prices are not negative, so there are at most price divided by the least saving moves; after the last of them a
// search finds nothing, and finds nothing again.
func TestConsolidationComesToRest(t *testing.T) {
	for seed := range uint64(*clusters) {
		comesToRest(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func comesToRest(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 11))
	w, set := drawTown(r)
	w.dear = r.IntN(2) == 0
	begin, least, moves, rounds := w.cost(), math.Inf(1), 0, 0
	for {
		before := w.cost()
		p, _ := w.round(set, func(s *step) { inspect(t, w, s) })
		if t.Failed() {
			return
		}
		if len(p.Moves) == 0 && w.swept == 0 {
			break
		}
		saved := 0.0
		for i := range p.Moves {
			m := &p.Moves[i]
			saved += m.Before - m.After
			least = min(least, m.NeededSaving)
		}
		if after := w.cost(); len(p.Moves) > 0 && after > before-least+1e-9 || !w.dear &&
			math.Abs(before-saved-w.swept-after) > 1e-6 {
			t.Errorf("a round of %d moves: $%.6f became $%.6f, though it was to save $%.6f", len(p.Moves), before,
				after, saved)
			return
		}
		moves += len(p.Moves)
		if rounds++; float64(moves) > begin/least+1e-9 {
			t.Errorf("%d moves of at least $%.6f from $%.6f", moves, least, begin)
			return
		}
	}
	s := w.snapshot()
	if p := search.Find(s, set); len(p.Moves) > 0 {
		t.Errorf("after all came to rest, %d moves are found", len(p.Moves))
	}
}

// TestSameSnapshotSameProposal asks twice, the second time with everything in another order of making.
func TestSameSnapshotSameProposal(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 12))
		w, set := drawTown(r)
		a, b := search.Find(w.snapshot(), set), search.Find(w.snapshot(), set)
		if x, y := tell(&a), tell(&b); x != y {
			t.Fatalf("seed %d: first\n%s\nthen\n%s", seed, x, y)
		}
	}
}

// tell writes all of a proposal.
func tell(p *disrupt.Proposal) string {
	out := fmt.Sprintln(p.Rev, p.Now, p.WakeAt)
	for i := range p.Moves {
		m := &p.Moves[i]
		out += fmt.Sprintln(m.ID, m.Reason, m.Claims, m.Before, m.After, m.Evicted, m.Cost)
		for _, a := range m.Assigned {
			out += fmt.Sprintln("  ", a.Pod.UID, a.Host)
		}
		for _, b := range m.Bins {
			out += fmt.Sprintln("  ", b.Pool.Name, b.Types, b.Requirements, b.Price, b.Seats)
		}
	}
	for _, s := range p.Blocked {
		out += fmt.Sprintln(s)
	}
	return out
}
