package schedule

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// act is something that a what-if has done and can take back.
type act struct {
	verb verb
	at   *lodging
	who  *lodger
	n    int
	// What the lodging had before.
	free    resource.Vector
	ports   int
	handles []string
}

type verb uint8

const (
	closes  verb = iota // a node takes nobody any more
	removes             // pods leave a node
	lodges              // pods get a place on a node
)

// Leave lets departures go and looks for room for their pods, and for their guests, on the nodes that stay; it is true if all
// have found some.
func (st *Stage) Leave(departures ...int) bool {
	st.moveOut(departures)
	for again := true; again; {
		again = false
		for i := range st.rest {
			b := &st.rest[i]
			if len(b.pods) > 0 && !st.full(b.lodger) {
				again = st.house(b) && !b.free() && len(b.pods) > 0 || again
			}
		}
	}
	st.rest = slices.DeleteFunc(st.rest, func(b bundle) bool { return len(b.pods) == 0 })
	return len(st.rest) == 0
}

// Clear is Leave for a single departure of which all pods must find room: it gives up as soon as that is out of the question.
func (st *Stage) Clear(departure int) bool {
	if slices.ContainsFunc(st.flats[departure].all(), func(b bundle) bool { return st.full(b.lodger) }) {
		return false
	}
	st.moveOut([]int{departure})
	for again := true; again; {
		again = false
		for i := range st.rest {
			b := &st.rest[i]
			if len(b.pods) == 0 {
				continue
			}
			progress := st.house(b)
			if len(b.pods) > 0 && b.free() {
				return false
			}
			again = progress && len(b.pods) > 0 || again
		}
	}
	st.rest = slices.DeleteFunc(st.rest, func(b bundle) bool { return len(b.pods) == 0 })
	return len(st.rest) == 0
}

// moveOut empties departures; st.rest is then who was there.
func (st *Stage) moveOut(departures []int) {
	st.rest = st.rest[:0]
	for _, i := range departures { // asked before anything moves: rooms only ever shrink, so that a no holds from then on
		for _, b := range st.flats[i].all() {
			st.full(b.lodger)
		}
	}
	for _, i := range departures {
		f := st.flats[i]
		f.house.gone = true
		st.journal = append(st.journal, act{verb: closes, at: f.house})
		st.refresh(f.house)
		for _, b := range f.all() {
			st.count(f.house, b.lodger, -len(b.pods))
			st.journal = append(st.journal, act{verb: removes, at: f.house, who: b.lodger, n: len(b.pods)})
			st.rest = pour(st.rest, b.lodger, b.pods...)
		}
	}
	slices.SortFunc(st.rest, func(a, b bundle) int { return a.rank - b.rank })
}

// full reports whether no node has room for a pod of the kind.
func (st *Stage) full(who *lodger) bool {
	if !who.homeless && len(st.journal) == 0 {
		who.from = who.tree.next(who.from, who.need)
		who.homeless = who.from < 0
	}
	return who.homeless
}

// mostTries bounds how many nodes with room, but where rules stand in the way, are looked at for a bundle.
const mostTries = 256

// house looks for room for the bundle's pods.
func (st *Stage) house(b *bundle) (progress bool) {
	bulk := b.bulk()
	for at, tries := max(b.from, 0), 0; len(b.pods) > 0 && tries < mostTries; {
		if at = b.tree.next(at, b.need); at < 0 {
			break
		}
		lo, n := b.tree.lodgings[at], 1
		if bulk {
			n = b.class.Requests.Count(lo.Free, len(b.pods))
		} else if !st.admits(lo, b.lodger) {
			at++
			tries++
			continue
		}
		st.lodge(lo, b, n)
		progress = true
	}
	return progress
}

// admits reports whether ports, volumes and rules let one more pod in.
func (st *Stage) admits(lo *lodging, who *lodger) bool {
	if clash(who.class.Ports, lo.Ports) {
		return false
	}
	st.steps += who.looks()
	if _, ok := st.l.allows(lo.at, who.kind); !ok {
		return false
	}
	return !slices.ContainsFunc(who.exclusive, func(handle string) bool { return st.l.volumes.taken[handle] })
}

// lodge gives n pods of the bundle a place.
func (st *Stage) lodge(lo *lodging, b *bundle, n int) {
	a := act{verb: lodges, at: lo, who: b.lodger, n: n, free: lo.Free, ports: len(lo.Ports)}
	if len(b.volumes) > 0 {
		a.handles = slices.Clone(lo.Handles)
	}
	st.journal = append(st.journal, a)
	lo.guests = pour(lo.guests, b.lodger, b.pods[:n]...)
	for _, pod := range b.pods[:n] {
		st.assigned = append(st.assigned, Assignment{Pod: pod, Host: lo.Name, Claim: lo.Claim})
	}
	b.pods = b.pods[n:]
	lo.occupy(b.kind, n)
	st.count(lo, b.lodger, n)
	st.refresh(lo)
}

// looks is how many rules are looked at when a pod of the kind is put somewhere.
func (k *kind) looks() int { return 1 + len(k.carries) + len(k.counted) }

// count tells the ledger that n pods more, or fewer, are there.
func (st *Stage) count(lo *lodging, who *lodger, n int) {
	if !who.free() {
		st.steps += who.looks()
		st.l.add(lo.at, lo.counts, who.kind, n)
	}
	for _, handle := range who.exclusive {
		st.l.volumes.taken[handle] = n > 0
	}
}

// refresh tells the rosters that a lodging's room has changed.
func (st *Stage) refresh(lo *lodging) {
	for _, leaf := range lo.leaves {
		leaf.tree.update(leaf.at, lo, st.dims)
	}
}

// Rest is what the pods are worth that have found no room: new nodes for them cost at least that.
func (st *Stage) Rest() float64 { return worthOf(st.rest) }

// Crowd is how many pods have found no room.
func (st *Stage) Crowd() int {
	n := 0
	for _, b := range st.rest {
		n += len(b.pods)
	}
	return n
}

// Left names a pod that has found no place, or nil.
func (st *Stage) Left() *cluster.Pod {
	if len(st.rest) == 0 {
		return nil
	}
	return st.rest[0].pods[0]
}

// Undo takes the what-if back.
func (st *Stage) Undo() {
	for i := len(st.journal) - 1; i >= 0; i-- {
		a := &st.journal[i]
		switch a.verb {
		case closes:
			a.at.gone = false
			st.refresh(a.at)
		case removes:
			st.count(a.at, a.who, a.n)
		case lodges:
			st.count(a.at, a.who, -a.n)
			a.at.dismiss(a.who, a.n)
			a.at.Free, a.at.Ports = a.free, a.at.Ports[:a.ports]
			if len(a.who.volumes) > 0 {
				a.at.Handles = a.handles
			}
			st.refresh(a.at)
		}
	}
	if st.stock != nil {
		st.stock.putBack(st.shop)
	}
	st.forget()
}

// dismiss takes back the last guests of a kind.
func (lo *lodging) dismiss(who *lodger, n int) {
	i := slices.IndexFunc(lo.guests, func(b bundle) bool { return b.lodger == who })
	b := &lo.guests[i]
	if b.pods = b.pods[:len(b.pods)-n]; len(b.pods) == 0 {
		lo.guests = slices.Delete(lo.guests, i, i+1)
	}
}

// Keep lets the what-if stand, and says who goes to which node that is there.
func (st *Stage) Keep() []Assignment {
	out := slices.Clone(st.assigned)
	for _, c := range st.crates {
		st.build(c)
	}
	st.forget()
	return out
}

func (st *Stage) forget() {
	st.journal, st.assigned, st.rest, st.crates, st.stock = st.journal[:0], st.assigned[:0], st.rest[:0], nil, nil
}

// stock is what limits and reservations leave.
type stock struct {
	left    []left
	stocks  map[string]int
	bounded bool
}

func (sh *shop) stock() *stock {
	out := &stock{stocks: maps.Clone(sh.stocks), bounded: len(sh.stocks) > 0}
	for _, m := range sh.markets {
		out.left = append(out.left, m.left)
		out.bounded = out.bounded || m.pool.Limits.Any()
	}
	return out
}

func (s *stock) putBack(sh *shop) {
	for i, m := range sh.markets {
		m.left = s.left[i]
	}
	sh.stocks = s.stocks
	if s.bounded {
		sh.restock()
	}
}
