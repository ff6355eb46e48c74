// Package schedule finds places for pods: on the nodes that are there, on nodes that are on their way, and on the
// cheapest new ones.
//
// Floor 2: a pure function of an overlay. The same overlay gives the same placement, byte for byte.
package schedule

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/purchase"
	"github.com/tenon-sh/tenon/internal/topology"
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
	Bins []market.Bin
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
	Omitted  []market.OmittedDaemon
	Squeezed []Squeeze

	// Faults are invariants that were found violated, and none if this package makes no mistake.
	Faults []purchase.Fault

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

// Place finds a place for each pending pod of the overlay.
func Place(o *cluster.Overlay, settings Settings) Placement {
	// 1. Sort the pods into pod sets, and take in what is there.
	out := Placement{helpRev: o.Base.RoomRev, hopeless: make(map[string]Unplaced)}
	pending, later, next := selectPending(o.Base, o.Pending(), !settings.IgnorePreferences, settings.LastPlacement)
	out.lastTurns = next
	mk := market.New(o.Base, settings.RelaxMinValues)
	hosts := o.Hosts()
	pending, oversized := separateOversized(mk, hosts, pending)
	counts := topology.NewCounts(o.Base, pending, !settings.IgnorePreferences)
	podSets := topology.PodSetsOf(pending, counts)
	putHeldLast(podSets, settings.HeldPods)
	houses := counts.AddHosts(hosts)
	counts.AddHosts(o.LeavingHosts())
	counts.MarkDaemonFollowers(podSets)
	mk.NoteDaemonFollowers(podSets)
	out.reuseHopeless(settings.LastPlacement, podSets)

	// 2. Use the nodes that are there and those on their way, as kube-scheduler would.
	fit := &hostFitter{counts: counts, market: mk, hosts: houses, podSets: podSets}
	fit.findHopeless()
	fit.fitAll()
	out.Assigned = fit.assigned
	later = append(later, fit.takeOutUndecided()...)

	// 3. Buy nodes for the rest.
	refused := setAside(podSets)
	out.takeOutHeld(podSets, settings.HeldPods)
	out.Omitted = mk.Omitted()
	b := &purchase.Buyer{Market: mk, Counts: counts, Hosts: houses, UsePreferences: !settings.IgnorePreferences}
	foreign, squeezed := out.buyNodes(b, podSets, settings.AllowSqueeze)
	out.Deferred, out.Truncated, out.Faults = len(later), b.Truncated || fit.exhausted, b.Faults

	// 4. Say why, where there is none.
	if squeezed {
		mk.RequireDaemons(market.AllDaemons())
	}
	ex := newExplainer(o.Base, mk, &out)
	ex.explain(counts, foreign)
	if len(foreign) > 0 {
		mk.RequireDaemons(market.DaemonsOfAnyPool(mk.DaemonsElsewhere))
	}
	ex.explain(counts, podSets)
	ex.explainOversized(oversized, &settings)
	out.addRefused(refused, later)
	slices.SortFunc(out.Unplaced, func(a, b Unplaced) int { return strings.Compare(a.Pod.UID, b.Pod.UID) })
	return out
}

// buyNodes buys nodes for the pods that are left. foreign are the pod sets for which nodes were looked for without
// DaemonSets that fit in other pools only; squeezed says that no room is kept for any DaemonSet at the end.
func (p *Placement) buyNodes(b *purchase.Buyer, podSets []*topology.PodSet,
	allowSqueeze bool) (foreign []*topology.PodSet,
	squeezed bool) {
	bins := b.Buy(podSets)
	more, foreign := p.buyWithoutForeignDaemons(b, podSets)
	bins = append(bins, more...)
	if allowSqueeze {
		more, squeezed = p.squeeze(b, podSets)
		bins = append(bins, more...)
	}
	bins = p.separateHostPods(bins)
	p.Bins = make([]market.Bin, len(bins))
	for i, bin := range bins {
		p.Bins[i] = bin.Finish()
		p.Price += bin.Price
	}
	p.Bound = b.LowerBound(bins)
	return foreign, squeezed
}

// addRefused says why pods were not looked at: something about them is not supported, or it is not their turn.
func (p *Placement) addRefused(refused []*topology.PodSet, later []*cluster.Pod) {
	p.Unplaced = slices.Grow(p.Unplaced, len(later))
	for _, set := range refused {
		for _, pod := range set.Pods {
			p.Unplaced = append(p.Unplaced, Unplaced{Pod: pod, Unsupported: set.Class.Unsupported})
		}
	}
	for _, pod := range later {
		p.Unplaced = append(p.Unplaced, Unplaced{Pod: pod, Deferred: true})
	}
}

// separateHostPods sets aside what went to hosts that are there, and returns the new nodes.
func (p *Placement) separateHostPods(bins []*purchase.OpenBin) []*purchase.OpenBin {
	return slices.DeleteFunc(bins, func(b *purchase.OpenBin) bool {
		if b.Host == nil {
			return false
		}
		for _, ld := range b.Contents {
			for _, pod := range ld.Pods {
				p.Assigned = append(p.Assigned, Assignment{Pod: pod, Host: b.Host.Name, Claim: b.Host.Claim,
					Later: true})
			}
		}
		return true
	})
}

// setAside empties the pod sets that may not be given new nodes and returns their pods.
func setAside(podSets []*topology.PodSet) []*topology.PodSet {
	var out []*topology.PodSet
	for _, p := range podSets {
		if len(p.Class.Unsupported) > 0 && len(p.Pods) > 0 {
			out = append(out, &topology.PodSet{Class: p.Class, Pods: p.TakePods(len(p.Pods))})
		}
	}
	return out
}

// putHeldLast puts the pods that are held behind the others of their pod sets.
func putHeldLast(podSets []*topology.PodSet, held map[string]PodHold) {
	if len(held) == 0 {
		return
	}
	for _, set := range podSets {
		set.PutHeldLast(func(pod *cluster.Pod) (string, bool) {
			reason, is := held[pod.UID]
			if !is {
				return "", false
			}
			return reason.Tries.Owner, true
		})
	}
}

// takeOutHeld takes the pods that are held out of the pod sets.
func (p *Placement) takeOutHeld(podSets []*topology.PodSet, held map[string]PodHold) {
	for _, set := range podSets {
		for _, pod := range set.TakeOutHeld() {
			p.Unplaced = append(p.Unplaced, Unplaced{Pod: pod, Held: held[pod.UID]})
		}
	}
}
