// Package schedule finds places for pods: on the nodes that are there, on nodes that are on their way, and on the
// cheapest new ones.
//
// Floor 2: a pure function of an overlay. The same overlay gives the same placement, byte for byte.
package schedule

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// Settings are what a placement depends on besides the world.
type Settings struct {
	// IgnoreWishes leaves preferences out of account.
	IgnoreWishes bool
	// RelaxMinValues lets a pool's minValues give way where they can't be met.
	RelaxMinValues bool
	// Before is an earlier placement with the same settings, if there is one. It saves work and changes nothing: pods
	// for which there was nothing then, had they been alone, are not tried again until something happens that may help. If
	// not all pods can be looked at, those come first that have waited since then.
	Before *Placement
	// Held are pods for which no node is bought, by UID: they may use what is there.
	Held map[string]Hold
	// Squeeze buys nodes on which not all DaemonSets find room for pods that wait and would get none otherwise. It is
	// for pods that wait now, which are told their node before it opens. Who asks what would be if nodes went must not
	// set it: DaemonSets come to a new node before pods that have yet to leave theirs, and fill it.
	Squeeze bool
}

// Hold is why no node is bought for a pod: nodes that were made for its owner are of no use to it.
type Hold struct {
	Setback *cluster.Setback
	Failure *cluster.VainNode
	// Trying says that a node is tried right now, for another pod of the same kind.
	Trying bool
	// Sent says that the pod is meant for that very node all the same: it would do, and only kube-scheduler says no.
	Sent bool
}

// Placement says where every pending pod goes.
type Placement struct {
	// Assigned pods go to hosts that are there or on their way.
	Assigned []Assignment
	// Bins are new nodes.
	Bins []Bin
	// Unplaced pods found no place.
	Unplaced []Unplaced
	// Price per hour of the new nodes, and a price that no choice of new nodes for their pods can undercut.
	Price, Bound float64
	// Deferred is how many pods wait for the next placement: there were more rules between pods than one takes on. Unplaced
	// names them.
	Deferred int
	// Cut says that a search was brought to an end by its budget of steps: the nodes may be dearer than need be.
	Cut bool

	// Omitted are the DaemonSets that new nodes are planned without; Squeezed are the pools of which nodes are made
	// although not all of the other DaemonSets find room on them, because pods would get none otherwise.
	Omitted  []Omission
	Squeezed []Squeeze

	// Faults are invariants that were found violated, and none if this package makes no mistake.
	Faults []Fault

	// help is the snapshot's Help; hopeless are the reasons of classes of which nothing can be placed until it changes.
	help     uint64
	hopeless map[string]Unplaced
	// turns say whose turn it is if not all pods can be looked at.
	turns turns
}

// Assignment gives a pod a place on a host.
type Assignment struct {
	Pod  *cluster.Pod
	Host string // name of the node, or of the claim while there is no node
	// Claim is the host's claim, empty if the host is none of ours.
	Claim string
	// Later says that rules let the pod in only once pods are on new nodes.
	Later bool
}

// rounds bounds how often pods are dealt and packed: what a round could not place because of what it did itself, the
// next may.
const rounds = 3

// Place finds a place for each pending pod of the overlay.
func Place(o *cluster.Overlay, settings Settings) Placement {
	// 1. Sort the pods into kinds, and take in what is there.
	out := Placement{help: o.Base.Help, hopeless: make(map[string]Unplaced)}
	pending, later, next := triage(o.Base, o.Pending(), !settings.IgnoreWishes, settings.Before)
	out.turns = next
	shop := newShop(o.Base, settings.RelaxMinValues)
	hosts := o.Hosts()
	pending, giants := shop.withoutGiants(hosts, pending)
	book := newLedger(o.Base, pending, !settings.IgnoreWishes)
	kinds := kindsOf(pending, book)
	holdBack(kinds, settings.Held)
	houses := moveIn(book, hosts)
	moveIn(book, o.Leaving())
	book.attach(shop, kinds)
	out.despair(settings.Before, kinds)

	// 2. Use the nodes that are there and those on their way, as kube-scheduler would.
	settler := &settler{l: book, shop: shop, houses: houses, kinds: kinds, wishes: !settings.IgnoreWishes, out: &out}
	settler.doom()
	settler.run()
	later = append(later, settler.leave()...)

	// 3. Buy nodes for the rest.
	refused := setAside(kinds)
	out.hold(kinds, settings.Held)
	out.Omitted = shop.omitted()
	crates := buyAll(book, shop, kinds, settler, nil)
	crates, settled := out.settleFor(book, shop, kinds, settler, crates)
	squeezed := false
	if settings.Squeeze {
		crates, squeezed = out.squeeze(book, shop, kinds, settler, crates)
	}
	crates = out.lodge(crates)
	out.Bins = make([]Bin, len(crates))
	for i, c := range crates {
		out.Bins[i] = c.seal()
		out.Price += c.Price
	}
	out.Bound = bound(shop, crates)
	out.Faults = shop.faults

	// 4. Say why, where there is none.
	if squeezed {
		shop.await(everyDaemon())
	}
	out.explainKinds(o.Base, shop, book, settled)
	if len(settled) > 0 {
		shop.await(everyDaemonOfAnyPool(shop.elsewhere))
	}
	out.explainKinds(o.Base, shop, book, kinds)
	out.explainGiants(o, shop, giants, &settings)
	for _, k := range refused {
		for _, pod := range k.pods {
			out.Unplaced = append(out.Unplaced, Unplaced{Pod: pod, Unsupported: k.class.Unsupported})
		}
	}
	out.Unplaced = slices.Grow(out.Unplaced, len(later))
	for _, pod := range later {
		out.Unplaced = append(out.Unplaced, Unplaced{Pod: pod, Deferred: true})
	}
	out.Deferred, out.Cut = len(later), shop.cut || settler.exhausted
	slices.SortFunc(out.Unplaced, func(a, b Unplaced) int { return strings.Compare(a.Pod.UID, b.Pod.UID) })
	return out
}

// buyAll buys nodes for the kinds' pods in a few rounds, beside the crates that there are already.
func buyAll(book *ledger, shop *shop, kinds []*kind, settler *settler, crates []*crate) []*crate {
	for round := range rounds {
		if !remain(kinds) {
			break
		}
		more := buy(book, shop, kinds, settler, round > 0)
		kept, dropped := referee(book, shop, more, len(crates))
		crates = append(crates, kept...)
		if !worthwhile(book, kinds, len(kept), dropped) {
			break
		}
		shop.restock()
	}
	return crates
}

// worthwhile reports whether another round may place more: pods were turned away by what the round itself did, or pods that
// wanted company that could not be had are given up, so that the company can go without them.
func worthwhile(l *ledger, kinds []*kind, bought, dropped int) bool {
	again := dropped > 0
	for _, k := range kinds {
		if len(k.pods) == 0 || len(k.carries) == 0 {
			continue
		}
		again = again || bought > 0
		if l.clings(k) && !k.lone {
			k.lone, again = true, true
		}
	}
	return again
}

// lodge sets aside what went to hosts that are there, and returns the new nodes.
func (p *Placement) lodge(crates []*crate) []*crate {
	return slices.DeleteFunc(crates, func(c *crate) bool {
		if c.house == nil {
			return false
		}
		for _, ld := range c.loads {
			for _, pod := range ld.pods {
				p.Assigned = append(p.Assigned, Assignment{Pod: pod, Host: c.house.Name, Claim: c.house.Claim, Later: true})
			}
		}
		return true
	})
}

// setAside empties the kinds that may not be given new nodes and returns their pods.
func setAside(kinds []*kind) []*kind {
	var out []*kind
	for _, k := range kinds {
		if len(k.class.Unsupported) > 0 && len(k.pods) > 0 {
			out = append(out, &kind{class: k.class, pods: k.take(len(k.pods))})
		}
	}
	return out
}

// hold takes the pods that are held out of the kinds.
func (p *Placement) hold(kinds []*kind, held map[string]Hold) {
	if len(held) == 0 {
		return
	}
	for _, k := range kinds {
		k.pods = slices.DeleteFunc(slices.Clone(k.pods), func(pod *cluster.Pod) bool {
			why, is := held[pod.UID]
			if is {
				p.Unplaced = append(p.Unplaced, Unplaced{Pod: pod, Held: why})
			}
			return is
		})
		k.held = nil
	}
}

// buy deals pods to domains and packs each tier of pools, the heaviest first.
func buy(book *ledger, sh *shop, kinds []*kind, hosts *settler, wide bool) []*crate {
	for _, k := range kinds {
		k.why, k.order = nil, nil
	}
	draft := book.copyTo(&sh.draft, nil, nil)
	draft.draft = true
	d := &dealer{l: draft, shop: sh, hosts: hosts, wide: wide, wishes: hosts.wishes}
	portions := d.deal(sh.inOneGroup(parties(draft, sh, kinds)))
	s := &stacker{l: draft, wishes: hosts.wishes, avoid: sh.avoidable()}
	stacks := s.stacks(portions)
	likes := newTaste(s.order, s.avoid)
	out := d.late
	for _, tier := range sh.tiers {
		stacks = slices.DeleteFunc(stacks, func(st *stack) bool { return st.rest() == 0 })
		if len(stacks) == 0 {
			break
		}
		out = append(out, newBuyer(sh, tier, stacks, likes).buy()...)
	}
	return out
}

// rest counts what is left of a stack.
func (st *stack) rest() int {
	st.Count = 0
	for _, p := range st.portions {
		st.Count += p.units
	}
	return st.Count
}

// avoidable reports whether some pool has taints that pods should rather avoid.
func (sh *shop) avoidable() bool {
	return slices.ContainsFunc(sh.markets, func(m *market) bool { return rather(nil, m.pool.Template.Taints) })
}
