package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// house is a host with its place in the ledger.
type house struct {
	*cluster.Host
	*spot
	// takes remembers, by demands on a node, whether the host meets them: 1 yes, −1 no, 0 not asked yet.
	takes []int8
}

// moveIn takes the hosts and their pods into the ledger.
func moveIn(l *ledger, hosts []cluster.Host) []*house {
	houses := make([]*house, len(hosts))
	for i := range hosts {
		h := &house{Host: &hosts[i], spot: l.open(&hosts[i])}
		houses[i] = h
	}
	for _, h := range houses {
		if !h.Initialized { // its daemons will be there before anybody else
			l.staff(h.Host, h.spot)
		}
		for _, p := range h.Pods {
			for _, handle := range p.Exclusive {
				l.volumes.taken[handle] = true
			}
			if len(l.rules) == 0 {
				continue
			}
			hard, _ := l.carried(p.Class)
			l.addRules(h.at, h.counts, hard, l.census.countedByPending(p), 1, !p.Deleting.IsZero())
		}
	}
	return houses
}

// settler puts pods on hosts that are there or on their way.
type settler struct {
	l      *ledger
	shop   *shop // for the classes' texts
	houses []*house
	kinds  []*kind
	wishes bool
	out    *Placement
	// steps counts hosts that were looked at, rounds how often all were; exhausted says that there were too many.
	steps, rounds int
	exhausted     bool
}

// run sends pods to the nodes that were made for their kind first, which is what makes planning again after a restart
// come to the same nodes, and then uses the room that is left.
func (s *settler) run() {
	seats := s.seats()
	for again := true; again && s.goOn(); {
		again = false
		s.steps += len(seats)
		for i := range seats {
			again = s.seat(&seats[i], false) || again
		}
	}
	for i := range seats {
		s.seat(&seats[i], true)
	}
	for again := true; again && s.goOn(); {
		again = false
		for _, k := range s.kinds {
			if len(k.class.Unsupported) == 0 {
				again = s.settle(k) && !s.quiet() || again
			}
		}
	}
}

// mostVisits bounds how often it is looked whether a host takes pods of a kind, once all hosts were looked at a few times: pods
// that wait for each other in a long row would go round and round.
const (
	mostVisits  = 20_000_000
	fewestTurns = 4
)

// goOn reports whether there is to be another round.
func (s *settler) goOn() bool {
	s.rounds++
	s.exhausted = s.exhausted || s.rounds > fewestTurns && s.steps > mostVisits
	return !s.exhausted
}

// leave takes out the pods that other pods' places decide about, if the rounds have come to an end too soon.
func (s *settler) leave() (later []*cluster.Pod) {
	if !s.exhausted {
		return nil
	}
	for _, k := range s.kinds {
		if len(k.carries) > 0 {
			later = append(later, k.take(len(k.pods))...)
		}
	}
	return later
}

// quiet says that no pod's place depends on another's: one round is enough.
func (s *settler) quiet() bool { return len(s.l.rules) == 0 }

// reservedSeat is room that a host keeps for pods of a class.
type reservedSeat struct {
	house *house
	kinds []*kind
	count int
}

func (s *settler) seats() []reservedSeat {
	byClass := make(map[string][]*kind)
	for _, k := range s.kinds {
		byClass[k.class.Key] = append(byClass[k.class.Key], k)
	}
	var out []reservedSeat
	for _, h := range s.houses {
		for _, seat := range h.Seats {
			if kinds := byClass[seat.Class]; kinds != nil && !h.Closed {
				out = append(out, reservedSeat{h, kinds, seat.Count - seated(h, seat.Class)})
			}
		}
	}
	return out
}

// seated counts the pods of a class that have taken their seats already.
func seated(h *house, class string) int {
	n := 0
	for _, p := range h.Pods {
		if p.Class.Key == class {
			n++
		}
	}
	return n
}

// seat gives pods their seats. A node that is on its way was made for them, and whoever has a seat on one of which not
// even the instance is known fits it. With force, rules that let pods in only in another order are not asked.
func (s *settler) seat(r *reservedSeat, force bool) (progress bool) {
	h := r.house
	for _, k := range r.kinds {
		for may := k.maySit(h); r.count > 0 && may > 0; {
			if !h.Undecided && !(h.holds(k) && s.suits(h, k)) {
				break
			}
			if !force || h.Initialized {
				if _, ok := s.l.allows(h.at, k); !ok {
					break
				}
			}
			if !s.l.volumes.claim(k.exclusive) {
				break
			}
			n := 1
			if k.bulk() {
				n = min(r.count, may)
				if !h.Undecided {
					n = k.class.Requests.Count(h.Free, n)
				}
			}
			s.put(k, h, n)
			r.count, may, progress = r.count-n, may-n, true
		}
	}
	return progress
}

// bulk reports whether nothing but room decides how many of the kind's pods a host takes.
func (k *kind) bulk() bool {
	return k.free() && len(k.volumes) == 0 && len(k.exclusive) == 0 && len(k.class.Ports) == 0
}

// settle uses the room on hosts for the kind's pods.
func (s *settler) settle(k *kind) (progress bool) {
	for _, h := range s.houses {
		if len(k.pods) == 0 {
			break
		}
		s.steps++
		for k.mayUse(h) > 0 && s.fits(h, k) && s.suits(h, k) {
			n := 1
			if k.bulk() {
				n = k.class.Requests.Count(h.Free, k.mayUse(h))
			} else if _, ok := s.l.allows(h.at, k); !ok {
				break
			}
			if !s.l.volumes.claim(k.exclusive) {
				return progress
			}
			s.put(k, h, n)
			progress = true
		}
	}
	return progress
}

// fits reports whether the host has room and ports for one more pod of the kind.
func (s *settler) fits(h *house, k *kind) bool {
	return !h.Closed && !h.Reserved && h.holds(k)
}

// holds is fits for a pod that has a seat there.
func (h *house) holds(k *kind) bool {
	need := k.class.Requests
	for _, v := range k.volumes {
		if _, there := slices.BinarySearch(h.Handles, v.Handle); there {
			need[v.Dim]--
		}
	}
	return need.Fits(h.Free) && !clash(k.class.Ports, h.Ports)
}

// suits reports whether the host's labels and taints suit the class. The answer is the same for all classes with the
// same demands.
func (s *settler) suits(h *house, k *kind) bool {
	n := s.shop.demand(k.class)
	for n >= len(h.takes) {
		h.takes = append(h.takes, 0)
	}
	if h.takes[n] == 0 {
		h.takes[n] = -1
		if h.Takes(k.class) {
			h.takes[n] = 1
		}
	}
	return h.takes[n] > 0
}

// claim takes hold of the volumes that only one pod may use; it is false if another has one.
func (v *volumes) claim(handles []string) bool {
	for _, handle := range handles {
		if v.taken[handle] {
			return false
		}
	}
	for _, handle := range handles {
		v.taken[handle] = true
	}
	return true
}

// put gives n pods of the kind a place on the host.
func (s *settler) put(k *kind, h *house, n int) {
	for _, pod := range k.take(n) {
		s.out.Assigned = append(s.out.Assigned, Assignment{Pod: pod, Host: h.Name, Claim: h.Claim})
	}
	h.occupy(k, n)
	s.l.add(h.at, h.counts, k, n)
}

// occupy takes the room, the ports and the attachments that n pods of the kind need.
func (h *house) occupy(k *kind, n int) {
	h.Free = h.Free.Sub(k.class.Requests.Times(int64(n)))
	h.Ports = append(h.Ports, k.class.Ports...)
	for _, v := range k.volumes {
		i, there := slices.BinarySearch(h.Handles, v.Handle)
		if there {
			h.Free[v.Dim]++
			continue
		}
		h.Handles = slices.Insert(h.Handles, i, v.Handle)
	}
}
