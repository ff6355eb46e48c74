package schedule

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/topology"
)

// hostFitter puts pods on hosts that are there or on their way.
type hostFitter struct {
	counts   *topology.Counts
	market   *market.Market // for the classes' texts
	hosts    []*topology.Host
	podSets  []*topology.PodSet
	assigned []Assignment
	// steps counts hosts that were looked at, rounds how often all were; exhausted says that there were too many.
	steps, rounds int
	exhausted     bool
}

// FillHosts gives pods places on hosts, as a placement does before it buys anything.
func FillHosts(counts *topology.Counts, mk *market.Market, hosts []*topology.Host,
	podSets []*topology.PodSet) []Assignment {
	f := &hostFitter{counts: counts, market: mk, hosts: hosts, podSets: podSets}
	f.fitAll()
	return f.assigned
}

// fitAll sends pods to the nodes that were made for their kind first, which is what makes planning again after a
// restart come to the same nodes, and then uses the room that is left.
func (f *hostFitter) fitAll() {
	seats := f.reservedSeats()
	for again := true; again && f.needsAnotherRound(); {
		again = false
		f.steps += len(seats)
		for i := range seats {
			again = f.fillSeat(&seats[i], false) || again
		}
	}
	for i := range seats {
		f.fillSeat(&seats[i], true)
	}
	for again := true; again && f.needsAnotherRound(); {
		again = false
		for _, p := range f.podSets {
			if len(p.Class.Unsupported) == 0 {
				again = f.fillRoom(p) && !f.isIndependent() || again
			}
		}
	}
}

// maxVisits bounds how often it is looked whether a host takes pods of a pod set, once all hosts were looked at a few
// times: pods that wait for each other in a long row would go round and round.
const (
	maxVisits = 20_000_000
	minRounds = 4
)

// needsAnotherRound reports whether there is to be another round.
func (f *hostFitter) needsAnotherRound() bool {
	f.rounds++
	f.exhausted = f.exhausted || f.rounds > minRounds && f.steps > maxVisits
	return !f.exhausted
}

// takeOutUndecided takes out the pods that other pods' places decide about, if the rounds have come to an end too soon.
func (f *hostFitter) takeOutUndecided() (later []*cluster.Pod) {
	if !f.exhausted {
		return nil
	}
	for _, p := range f.podSets {
		if len(p.Declared) > 0 {
			later = append(later, p.TakePods(len(p.Pods))...)
		}
	}
	return later
}

// isIndependent says that no pod's place depends on another's: one round is enough.
func (f *hostFitter) isIndependent() bool { return len(f.counts.Rules) == 0 }

// reservedSeat is room that a host keeps for pods of a class.
type reservedSeat struct {
	host    *topology.Host
	podSets []*topology.PodSet
	count   int
}

func (f *hostFitter) reservedSeats() []reservedSeat {
	byClass := make(map[string][]*topology.PodSet)
	for _, p := range f.podSets {
		byClass[p.Class.Key] = append(byClass[p.Class.Key], p)
	}
	var out []reservedSeat
	for _, h := range f.hosts {
		for _, seat := range h.Seats {
			if podSets := byClass[seat.Class]; podSets != nil && !h.Closed {
				out = append(out, reservedSeat{h, podSets, seat.Count - h.CountSeated(seat.Class)})
			}
		}
	}
	return out
}

// fillSeat gives pods their seats. A node that is on its way was made for them, and whoever has a seat on one of which
// not even the instance is known fits it. With force, rules that let pods in only in another order are not asked.
func (f *hostFitter) fillSeat(r *reservedSeat, force bool) (progress bool) {
	h := r.host
	for _, p := range r.podSets {
		for may := p.MaySit(h); r.count > 0 && may > 0; {
			if !h.Undecided && !(h.HoldsSeated(p) && f.suits(h, p)) {
				break
			}
			if !force || h.Initialized {
				if _, ok := f.counts.Allows(h.Domains, p); !ok {
					break
				}
			}
			if !f.counts.Volumes.Reserve(p.Exclusive) {
				break
			}
			n := 1
			if p.OnlyRoomDecides() {
				n = min(r.count, may)
				if !h.Undecided {
					n = p.Class.Requests.Count(h.Free, n)
				}
			}
			f.place(p, h, n)
			r.count, may, progress = r.count-n, may-n, true
		}
	}
	return progress
}

// fillRoom uses the room on hosts for the pod set's pods.
func (f *hostFitter) fillRoom(p *topology.PodSet) (progress bool) {
	for _, h := range f.hosts {
		if len(p.Pods) == 0 {
			break
		}
		f.steps++
		for p.MayUse(h) > 0 && h.Takes(p) && f.suits(h, p) {
			n := 1
			if p.OnlyRoomDecides() {
				n = p.Class.Requests.Count(h.Free, p.MayUse(h))
			} else if _, ok := f.counts.Allows(h.Domains, p); !ok {
				break
			}
			if !f.counts.Volumes.Reserve(p.Exclusive) {
				return progress
			}
			f.place(p, h, n)
			progress = true
		}
	}
	return progress
}

// suits reports whether the host's labels and taints suit the pod set.
func (f *hostFitter) suits(h *topology.Host, p *topology.PodSet) bool {
	return h.MeetsDemands(p.Class, f.market.DemandNumber(p.Class))
}

// place gives n pods of the pod set a place on the host.
func (f *hostFitter) place(p *topology.PodSet, h *topology.Host, n int) {
	for _, pod := range p.TakePods(n) {
		f.assigned = append(f.assigned, Assignment{Pod: pod, Host: h.Name, Claim: h.Claim})
	}
	h.Occupy(p, n)
	f.counts.AddPods(h.Position, p, n)
}
