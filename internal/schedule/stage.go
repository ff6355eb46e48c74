package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Departure is a node that may go, with the pods that would have to move.
type Departure struct {
	Host string
	Pods []*cluster.Pod
}

// Stage is a cluster that was taken in once, so that many what-ifs about nodes that go can be played on it: each costs what
// it touches, not what the cluster has. Pods move by the same rules as in a placement.
//
// A what-if begins with Leave, may go on with Buy, and ends with Keep, after which the next one builds on it, or Undo.
type Stage struct {
	l      *ledger
	shop   *shop
	wishes bool
	flats  []*flat
	houses []*lodging
	trees  map[string]*roster
	dims   []int
	// promised are the hosts that pods of the overlay have been sent to.
	promised map[string]bool

	journal  []act
	assigned []Assignment
	rest     []bundle // of the what-if: who has found no room yet
	crates   []*crate // what was bought for them
	stock    *stock   // what was for sale before
	named    int      // new nodes so far
	trial    ledger   // memory of the copies on which purchases are tried
	steps    int      // how often rules were looked at so far, about
}

// flat is a departure as the stage sees it.
type flat struct {
	house *lodging
	loads []bundle
	// stuck is a pod that can't be moved at all.
	stuck *cluster.Pod
}

// lodging is a house on the stage.
type lodging struct {
	*house
	// shut lodgings take nobody: they are no place for pods that move, or they go.
	shut, gone bool
	guests     []bundle // pods that have been given a place here
	rank       int      // in which order it is filled
	leaves     []leaf
}

// leaf is where a lodging is in a roster.
type leaf struct {
	tree *roster
	at   int
}

// lodger is a kind of pods on the stage.
type lodger struct {
	*kind
	need  []int64
	worth float64
	tree  *roster
	rank  int // the important and the large come first
	// homeless says that no node has room for a pod of the kind; if one has, none has before from in the roster: rooms only
	// ever shrink, what-ifs aside.
	homeless bool
	from     int
}

// bundle is some pods of one kind.
type bundle struct {
	*lodger
	pods []*cluster.Pod
}

// NewStage takes the cluster in. Pods of the overlay that look for a place are given one before anybody moves, where there is
// one. open says which hosts may be given pods that move.
func NewStage(o *cluster.Overlay, settings Settings, departures []Departure, open func(*cluster.Host) bool) *Stage {
	pending := o.Pending()
	all := pending[:len(pending):len(pending)]
	for i := range departures {
		all = append(all, departures[i].Pods...)
	}
	st := &Stage{l: newLedger(o.Base, all, !settings.IgnoreWishes), shop: newShop(o.Base, settings.RelaxMinValues),
		wishes: !settings.IgnoreWishes, trees: make(map[string]*roster), promised: make(map[string]bool)}
	sorter := newSorter(st.l)
	for _, p := range pending {
		k := sorter.kindOf(p)
		k.pods = append(k.pods, p)
	}
	waiting := slices.Clone(sorter.kinds)
	slices.SortStableFunc(waiting, compareKinds)
	st.unpack(sorter, departures)
	hosts := o.Hosts()
	houses := moveIn(st.l, hosts)
	moveIn(st.l, o.Leaving())
	st.l.attach(st.shop, sorter.kinds)
	var settled Placement
	(&settler{l: st.l, shop: st.shop, houses: houses, kinds: waiting, wishes: st.wishes, out: &settled}).run()
	for i := range settled.Assigned {
		st.promised[settled.Assigned[i].Host] = true
	}
	for _, k := range sorter.kinds {
		k.pods = nil
	}
	st.furnish(houses, departures, open)
	st.appraise()
	return st
}

// unpack sorts the departures' pods into kinds.
func (st *Stage) unpack(sorter *sorter, departures []Departure) {
	lodgers := make(map[*kind]*lodger)
	for i := range departures {
		f := &flat{}
		for _, p := range departures[i].Pods {
			k := sorter.kindOf(p)
			if len(k.class.Unsupported) > 0 || len(st.l.ties(p)) > 0 {
				f.stuck = p
			}
			lo := lodgers[k]
			if lo == nil {
				lo = &lodger{kind: k}
				lodgers[k] = lo
			}
			f.loads = pour(f.loads, lo, p)
		}
		st.flats = append(st.flats, f)
	}
	slices.SortStableFunc(sorter.kinds, compareKinds)
	for rank, k := range sorter.kinds {
		if lo := lodgers[k]; lo != nil {
			lo.rank = rank
		}
	}
	var used [resource.Size]bool
	for _, lo := range lodgers {
		for dim, x := range lo.class.Requests {
			used[dim] = used[dim] || x > 0
		}
	}
	for dim, u := range used {
		if u {
			st.dims = append(st.dims, dim)
		}
	}
	for _, lo := range lodgers {
		for _, dim := range st.dims {
			lo.need = append(lo.need, lo.class.Requests[dim])
		}
	}
}

// pour adds pods to the bundle of their kind.
func pour(list []bundle, lo *lodger, pods ...*cluster.Pod) []bundle {
	for i := range list {
		if list[i].lodger == lo {
			list[i].pods = append(list[i].pods, pods...)
			return list
		}
	}
	return append(list, bundle{lo, slices.Clone(pods)})
}

// furnish finds the houses of the departures, and those that take pods.
func (st *Stage) furnish(houses []*house, departures []Departure, open func(*cluster.Host) bool) {
	byName := make(map[string]*lodging, len(houses))
	for _, h := range houses {
		lo := &lodging{house: h, shut: h.Closed || h.Reserved || h.Undecided || !open(h.Host)}
		st.houses = append(st.houses, lo)
		byName[h.Name] = lo
	}
	for i, f := range st.flats {
		f.house = byName[departures[i].Host]
	}
}

// appraise works out what pods of each kind are worth: what they have to pay at least, whatever nodes are bought.
func (st *Stage) appraise() {
	var stacks []*stack
	byKey, of := make(map[stackKey]int), make(map[*lodger]int)
	for _, f := range st.flats {
		for _, b := range f.loads {
			at, known := of[b.lodger]
			if !known {
				where := st.shop.site([]*cluster.PodClass{b.class}, nil)
				key := stackKey{need: b.class.Requests, site: where}
				if at, known = byKey[key]; !known {
					at = len(stacks)
					byKey[key] = at
					stacks = append(stacks, &stack{site: where, loose: where, Stack: pack.Stack{Need: b.class.Requests}})
				}
				of[b.lodger] = at
			}
			stacks[at].Count += len(b.pods)
		}
	}
	if len(stacks) == 0 || len(st.shop.markets) == 0 {
		return
	}
	buyer := newBuyer(st.shop, st.shop.markets, stacks, newTaste(nil, false))
	buyer.firstTierOnly()
	worth := pack.Worth(&buyer.problem)
	for lo, at := range of {
		lo.worth = worth[at]
	}
}

// firstTierOnly leaves each site what the first tier sells that has something for it, reservations aside: that is where its
// pods would go, and what there are only a few of says nothing of what a pod is worth.
func (b *buyer) firstTierOnly() {
	tier := make(map[*market]int)
	for i, markets := range b.shop.tiers {
		for _, m := range markets {
			tier[m] = i
		}
	}
	for n, bits := range b.problem.Sites {
		first := len(b.shop.tiers)
		for i := range bits.All {
			if b.problem.Offers[i].Stock < 0 {
				first = min(first, tier[b.rows[i].m])
			}
		}
		kept := bits.AndNot(bits)
		for i := range bits.All {
			if b.problem.Offers[i].Stock < 0 && tier[b.rows[i].m] == first {
				kept.Set(i)
			}
		}
		b.problem.Sites[n] = kept
	}
}

// Steps is about how often rules between pods have been looked at so far: most of the work where there are many.
func (st *Stage) Steps() int { return st.steps }

// manyLooks is from how many rules on that concern a pod its rules count as work. Ordinary pods have a few.
const manyLooks = 64

// Looks is how many rules are looked at when the departure's pods with very many rules are put somewhere, once each.
func (st *Stage) Looks(i int) int {
	sum := 0
	for _, b := range st.flats[i].loads {
		if looks := b.looks(); looks > manyLooks {
			sum += looks * len(b.pods)
		}
	}
	return sum
}

// Worth is what a departure's pods are worth, guests included: what it costs at least to run them elsewhere.
func (st *Stage) Worth(i int) float64 { return worthOf(st.flats[i].all()) }

// all are the pods that have to move if the departure goes: its own, and those who have been given a place there.
func (f *flat) all() []bundle {
	if f.house == nil || len(f.house.guests) == 0 {
		return f.loads
	}
	return slices.Concat(f.loads, f.house.guests)
}

func worthOf(list []bundle) float64 {
	sum := 0.0
	for _, b := range list {
		sum += b.worth * float64(len(b.pods))
	}
	return sum
}

// Stuck is a pod of the departure that can't be moved at all, or nil.
func (st *Stage) Stuck(i int) *cluster.Pod { return st.flats[i].stuck }

// Promised reports whether pods that look for a place were given one on the departure's node: they are not among those that it takes
// along, and would be left with nowhere to go.
func (st *Stage) Promised(i int) bool {
	return st.flats[i].house != nil && st.promised[st.flats[i].house.Name]
}

// Gone reports whether the departure has left.
func (st *Stage) Gone(i int) bool { return st.flats[i].house == nil || st.flats[i].house.gone }

// Guests yields the pods of other departures that have been given a place on this one's node.
func (st *Stage) Guests(i int) func(yield func(*cluster.Pod) bool) {
	return func(yield func(*cluster.Pod) bool) {
		for _, b := range st.flats[i].house.guests {
			for _, p := range b.pods {
				if !yield(p) {
					return
				}
			}
		}
	}
}
