package disrupt

import (
	"fmt"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// bundle are moves that share new nodes: what they save can only be told together.
type bundle struct {
	groups []*group
	// bins are the numbers of the nodes that would have to be made; made are those that were.
	bins []int
	made []*cluster.Claim
}

// proceedSaving is about the moves that save money.
func (d *desk) proceedSaving() {
	var list []*group
	for _, g := range d.groups {
		if g.over == "" && saves(g.reason) {
			list = append(list, g)
		}
	}
	for _, b := range d.bundlesOf(list) {
		d.proceedBundle(b)
	}
}

func (d *desk) proceedBundle(b *bundle) {
	far, hindered := ready, false
	for _, g := range b.groups {
		hindered = d.hindered(g) || hindered
		far = max(far, g.worst())
	}
	switch {
	case far == none: // without those that stay the rest looks different
		d.shrink(b, d.holdouts(b, none), PodsStranded)
		d.awaitAll(b)
	case hindered:
		d.awaitAll(b)
	case far == coming || far == ready && slices.ContainsFunc(b.groups, d.lacks):
		if d.awaitAll(b) {
			d.reweigh(b)
		}
	case far == wished:
		d.replace(b)
	default:
		d.commit(b)
	}
}

// reweigh gives a bundle up that waits for what would not pay any more if it were there.
func (d *desk) reweigh(b *bundle) {
	t, known := d.tally(b, nodesOf(b))
	if why := t.short(d.set, 0); known && why != "" {
		b.giveUp(why)
	}
}

// awaitAll reports whether a bundle's moves may go on waiting.
func (d *desk) awaitAll(b *bundle) bool {
	ok := true
	for _, g := range b.groups {
		ok = d.await(g) && ok
	}
	return ok
}

// replace asks for the new nodes of a bundle if it pays. If it does not, the nodes stay whose pods have no place without them, and
// the others go on.
//
// Where replacements have been made already those are paid for, and more are only made in place of nodes that would have to stay
// otherwise, if that pays by itself: how the pods are put beside each other this time is no reason to give up what was bought
// for.
func (d *desk) replace(b *bundle) {
	if !d.awaitAll(b) {
		return
	}
	bins := make([]schedule.Bin, len(b.bins))
	for i, n := range b.bins {
		bins[i] = d.saving.Bins[n]
	}
	part, held := nodesOf(b), d.holdouts(b, wished)
	if len(b.made) > 0 {
		part = candidatesOf(held)
	}
	if along, why := d.riders(b, part, bins); len(along) > 0 && len(along) < len(part) {
		d.shrink(b, along, why)
		return
	}
	a, no := AppraiseClosely(d.set, part, bins)
	whole, known := d.whole(b, nodesOf(b))
	switch {
	case no != nil:
		d.shrink(b, held, no.Why)
	case !known:
		b.giveUp(PriceUnknown)
	case whole.short(d.set, a.Worst) != "":
		d.shrink(b, held, whole.short(d.set, a.Worst))
	case len(leavingOf(b)) == 0 && d.unbalanced(whole.nodes, whole.saving()-a.After):
		d.shrink(b, held, NotBalanced)
	default:
		for i, n := range b.bins {
			g := mostIn(b.groups, n)
			d.Wanted = append(d.Wanted, Wanted{Bin: a.Bins[i], Replaces: g.id, Reason: g.reason, Party: b.groups[0].id})
		}
	}
}

// mostIn is the move that has the most pods in a new node.
func mostIn(groups []*group, bin int) *group {
	best, most := groups[0], 0
	for _, g := range groups {
		n := 0
		for i := range g.seats {
			if g.seats[i].rank == wished && g.seats[i].bin == bin {
				n++
			}
		}
		if n > most {
			best, most = g, n
		}
	}
	return best
}

// nodesOf are the nodes of a bundle.
func nodesOf(b *bundle) []Candidate {
	var out []Candidate
	for _, g := range b.groups {
		out = append(out, g.nodes...)
	}
	return out
}

// commit has the nodes of a bundle go: all that their pods need is up. It is asked once more whether it pays, since prices
// change and the cloud chooses; and, where nothing has been bought, whether it is worth the disturbance.
func (d *desk) commit(b *bundle) {
	t, known := d.tally(b, nodesOf(b))
	switch why := t.short(d.set, 0); {
	case !known:
		b.giveUp(PriceUnknown)
	case why != "":
		b.giveUp(why)
	case len(b.made)+len(leavingOf(b)) == 0 && d.unbalanced(t.nodes, t.saving()):
		b.giveUp(NotBalanced)
	default:
		d.departures = append(d.departures, departure{b.groups, fmt.Sprintf("which saves $%.3f an hour", t.saving())})
	}
}

// giveUp gives all moves of the bundle up.
func (b *bundle) giveUp(why Why) {
	for _, g := range b.groups {
		g.giveUp(why, true)
	}
}

// bundlesOf puts moves together that share new nodes, in the order of the first of each.
func (d *desk) bundlesOf(list []*group) []*bundle {
	byID := make(map[string]int, len(list))
	for i, g := range list {
		byID[g.id] = i
	}
	root := make([]int, len(list))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			i = root[i]
		}
		return i
	}
	link := func(i, j int) {
		a, b := find(i), find(j)
		root[max(a, b)] = min(a, b)
	}
	first, made := make(map[int]int), make([][]*cluster.Claim, len(list))
	for i, g := range list {
		for _, st := range g.seats {
			if st.rank == wished {
				if j, known := first[st.bin]; known {
					link(i, j)
				} else {
					first[st.bin] = i
				}
			}
			if c := d.claimOf(st); c != nil && d.owed(c) {
				if j, known := byID[c.Replaces]; known {
					link(i, j)
				}
			}
		}
	}
	for _, c := range d.s.Claims { // what was made and is not used is paid for all the same
		if i, known := byID[c.Replaces]; known && c.Deleting.IsZero() && d.owed(c) {
			made[i] = append(made[i], c)
		}
	}
	return bundled(list, made, find)
}

func bundled(list []*group, made [][]*cluster.Claim, find func(int) int) []*bundle {
	var out []*bundle
	at := make(map[int]*bundle)
	for i, g := range list {
		b := at[find(i)]
		if b == nil {
			b = &bundle{}
			at[find(i)] = b
			out = append(out, b)
		}
		b.groups = append(b.groups, g)
		b.made = append(b.made, made[i]...)
		for _, st := range g.seats {
			if st.rank == wished && !slices.Contains(b.bins, st.bin) {
				b.bins = append(b.bins, st.bin)
			}
		}
	}
	for _, b := range out {
		slices.Sort(b.bins)
	}
	return out
}

// claimOf is the claim of the host that a pod goes to, or nil.
func (d *desk) claimOf(st seat) *cluster.Claim {
	if c := d.s.ClaimOf(st.host); c != nil {
		return c
	}
	return d.s.Claim(st.host)
}
