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
	// IgnorePreferences leaves preferences out of account.
	IgnorePreferences bool
	// RelaxMinValues lets a pool's minValues give way where they can't be met.
	RelaxMinValues bool
	// LastPlacement is an earlier placement with the same settings, if there is one. It saves work and changes nothing:
	// pods for which there was nothing then, had they been alone, are not tried again until something happens that may
	// help. If not all pods can be looked at, those come first that have waited since then.
	LastPlacement *Placement
	// HeldPods are pods for which no node is bought, by UID: they may use what is there.
	HeldPods map[string]PodHold
	// AllowSqueeze buys nodes on which not all DaemonSets find room for pods that wait and would get none otherwise. It
	// is for pods that wait now, which are told their node before it opens. Who asks what would be if nodes went must
	// not set it: DaemonSets come to a new node before pods that have yet to leave theirs, and fill it.
	AllowSqueeze bool
}

// PodHold is why no node is bought for a pod: nodes that were made for its owner are of no use to it.
type PodHold struct {
	Tries   *cluster.WorkloadTries
	Failure *cluster.UnusedNode
	// TryUnderWay says that a node is tried right now, for another pod of the same pod set.
	TryUnderWay bool
	// MeantForNode says that the pod is meant for that very node all the same: it would do, and only kube-scheduler
	// says no.
	MeantForNode bool
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
	// Deferred is how many pods wait for the next placement: there were more rules between pods than one takes on.
	// Unplaced names them.
	Deferred int
	// Truncated says that a search was brought to an end by its budget of steps: the nodes may be dearer than need be.
	Truncated bool

	// Omitted are the DaemonSets that new nodes are planned without; Squeezed are the pools of which nodes are made
	// although not all of the other DaemonSets find room on them, because pods would get none otherwise.
	Omitted  []OmittedDaemon
	Squeezed []Squeeze

	// Faults are invariants that were found violated, and none if this package makes no mistake.
	Faults []Fault

	// helpRev is the snapshot's Help; hopeless are the reasons of classes of which nothing can be placed until it
	// changes.
	helpRev  uint64
	hopeless map[string]Unplaced
	// lastTurns say whose turn it is if not all pods can be looked at.
	lastTurns lastTurns
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

// maxRounds bounds how often pods are assigned and packed: what a round could not place because of what it did itself,
// the next may.
const maxRounds = 3

// Place finds a place for each pending pod of the overlay.
func Place(o *cluster.Overlay, settings Settings) Placement {
	// 1. Sort the pods into pod sets, and take in what is there.
	out := Placement{helpRev: o.Base.RoomRev, hopeless: make(map[string]Unplaced)}
	pending, later, next := selectPending(o.Base, o.Pending(), !settings.IgnorePreferences, settings.LastPlacement)
	out.lastTurns = next
	mk := newMarket(o.Base, settings.RelaxMinValues)
	hosts := o.Hosts()
	pending, oversized := mk.separateOversized(hosts, pending)
	counts := newTopologyCounts(o.Base, pending, !settings.IgnorePreferences)
	podSets := podSetsOf(pending, counts)
	orderHeldLast(podSets, settings.HeldPods)
	houses := addHosts(counts, hosts)
	addHosts(counts, o.LeavingHosts())
	counts.markDaemonFollowers(mk, podSets)
	out.reuseHopeless(settings.LastPlacement, podSets)

	// 2. Use the nodes that are there and those on their way, as kube-scheduler would.
	fit := &hostFitter{counts: counts, market: mk, hosts: houses, podSets: podSets,
		usePreferences: !settings.IgnorePreferences, out: &out}
	fit.findHopeless()
	fit.fitAll()
	later = append(later, fit.takeOutUndecided()...)

	// 3. Buy nodes for the rest.
	refused := setAside(podSets)
	out.takeOutHeld(podSets, settings.HeldPods)
	out.Omitted = mk.omitted()
	bins := buyAll(counts, mk, podSets, fit, nil)
	bins, settled := out.buyWithoutForeignDaemons(counts, mk, podSets, fit, bins)
	squeezed := false
	if settings.AllowSqueeze {
		bins, squeezed = out.squeeze(counts, mk, podSets, fit, bins)
	}
	bins = out.separateHostPods(bins)
	out.Bins = make([]Bin, len(bins))
	for i, b := range bins {
		out.Bins[i] = b.finish()
		out.Price += b.Price
	}
	out.Bound = lowerBound(mk, bins)
	out.Faults = mk.faults

	// 4. Say why, where there is none.
	if squeezed {
		mk.requireDaemons(requireAllDaemons())
	}
	out.explainKinds(o.Base, mk, counts, settled)
	if len(settled) > 0 {
		mk.requireDaemons(requireDaemonsOfAnyPool(mk.daemonsElsewhere))
	}
	out.explainKinds(o.Base, mk, counts, podSets)
	out.explainOversized(o, mk, oversized, &settings)
	for _, p := range refused {
		for _, pod := range p.pods {
			out.Unplaced = append(out.Unplaced, Unplaced{Pod: pod, Unsupported: p.class.Unsupported})
		}
	}
	out.Unplaced = slices.Grow(out.Unplaced, len(later))
	for _, pod := range later {
		out.Unplaced = append(out.Unplaced, Unplaced{Pod: pod, Deferred: true})
	}
	out.Deferred, out.Truncated = len(later), mk.truncated || fit.exhausted
	slices.SortFunc(out.Unplaced, func(a, b Unplaced) int { return strings.Compare(a.Pod.UID, b.Pod.UID) })
	return out
}

// buyAll buys nodes for the pod sets' pods in a few rounds, beside the bins that there are already.
func buyAll(counts *topologyCounts, mk *market, podSets []*podSet, fit *hostFitter, bins []*openBin) []*openBin {
	for round := range maxRounds {
		if !anyUnplaced(podSets) {
			break
		}
		more := buyTiers(counts, mk, podSets, fit, round > 0)
		kept, dropped := verify(counts, mk, more, len(bins))
		bins = append(bins, kept...)
		if !anotherRoundHelps(counts, podSets, len(kept), dropped) {
			break
		}
		mk.refresh()
	}
	return bins
}

// anotherRoundHelps reports whether another round may place more: pods were turned away by what the round itself did,
// or pods that wanted group that could not be had are given up, so that the group can go without them.
func anotherRoundHelps(t *topologyCounts, podSets []*podSet, bought, dropped int) bool {
	again := dropped > 0
	for _, p := range podSets {
		if len(p.pods) == 0 || len(p.declared) == 0 {
			continue
		}
		again = again || bought > 0
		if t.needsSameNode(p) && !p.withoutGroup {
			p.withoutGroup, again = true, true
		}
	}
	return again
}

// separateHostPods sets aside what went to hosts that are there, and returns the new nodes.
func (p *Placement) separateHostPods(bins []*openBin) []*openBin {
	return slices.DeleteFunc(bins, func(b *openBin) bool {
		if b.hostState == nil {
			return false
		}
		for _, ld := range b.contents {
			for _, pod := range ld.pods {
				p.Assigned = append(p.Assigned, Assignment{Pod: pod, Host: b.hostState.Name, Claim: b.hostState.Claim,
					Later: true})
			}
		}
		return true
	})
}

// setAside empties the pod sets that may not be given new nodes and returns their pods.
func setAside(podSets []*podSet) []*podSet {
	var out []*podSet
	for _, p := range podSets {
		if len(p.class.Unsupported) > 0 && len(p.pods) > 0 {
			out = append(out, &podSet{class: p.class, pods: p.takePods(len(p.pods))})
		}
	}
	return out
}

// takeOutHeld takes the pods that are held out of the pod sets.
func (p *Placement) takeOutHeld(podSets []*podSet, held map[string]PodHold) {
	if len(held) == 0 {
		return
	}
	for _, set := range podSets {
		set.pods = slices.DeleteFunc(slices.Clone(set.pods), func(pod *cluster.Pod) bool {
			reason, is := held[pod.UID]
			if is {
				p.Unplaced = append(p.Unplaced, Unplaced{Pod: pod, Held: reason})
			}
			return is
		})
		set.held = nil
	}
}

// buyTiers assigns pods to domains and packs each tier of pools, the heaviest first.
func buyTiers(counts *topologyCounts, mk *market, podSets []*podSet, hosts *hostFitter, allDomains bool) []*openBin {
	for _, p := range podSets {
		p.lastConflict, p.assignedSets = nil, nil
	}
	draft := counts.copyTo(&mk.scratchCounts, nil, nil)
	draft.forNewNodes = true
	a := &domainAssigner{counts: draft, market: mk, hostFit: hosts, allDomains: allDomains,
		usePreferences: hosts.usePreferences}
	portions := a.assign(mk.keepConsistentGroups(makePodGroups(draft, mk, podSets)))
	b := &itemBuilder{counts: draft, usePreferences: hosts.usePreferences, avoidTaints: mk.hasAvoidedTaints()}
	items := b.items(portions)
	preferences := newPreferenceScores(b.preferenceList, b.avoidTaints)
	out := a.hostBins
	for _, tier := range mk.tiers {
		items = slices.DeleteFunc(items, func(it *packItem) bool { return it.remaining() == 0 })
		if len(items) == 0 {
			break
		}
		out = append(out, newTierPacker(mk, tier, items, preferences).solve()...)
	}
	return out
}

// remaining counts what is left of an item.
func (it *packItem) remaining() int {
	it.Count = 0
	for _, p := range it.shares {
		it.Count += p.units
	}
	return it.Count
}

// hasAvoidedTaints reports whether some pool has taints that pods should rather avoid.
func (mk *market) hasAvoidedTaints() bool {
	return slices.ContainsFunc(mk.markets, func(pm *poolMarket) bool {
		return prefersElsewhere(nil, pm.pool.Template.Taints)
	})
}
