package launch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

const (
	// settlesIn is how long EC2's count of free addresses may lag behind a launch.
	settlesIn = 5 * time.Second
	// avoidedFor is how long a subnet is passed over that EC2 has called full or unknown, if there is another. What its
	// count says meanwhile is not believed: it may lag, and addresses that are left may be of no use.
	avoidedFor = time.Minute
)

// subnetChooser chooses where instances stand. EC2's count of free addresses is read now and then; what was launched
// since is taken off here, so that launches at the same time don't all go to the same subnet.
type subnetChooser struct {
	network Network
	now     func() time.Time

	mu sync.Mutex
	// pending are addresses that launches under way may take, by subnet; taken those that launches have taken.
	pending map[string]int64
	taken   map[string][]addressesTaken
	// avoided are subnets that EC2 has called full or unknown, and when.
	avoided map[string]time.Time
}

type addressesTaken struct {
	addresses int64
	at        time.Time
}

func newSubnetChooser(from Network, now func() time.Time) *subnetChooser {
	return &subnetChooser{network: from, now: now, pending: map[string]int64{}, taken: map[string][]addressesTaken{},
		avoided: map[string]time.Time{}}
}

// subnetChoice is the subnet for a zone.
type subnetChoice struct {
	subnet string
	// hasAlternative says that the zone has another that could be used.
	hasAlternative bool
}

// choose picks a subnet for each of the order's zones: the one with most addresses left. done must follow.
func (s *subnetChooser) choose(ctx context.Context, spec *launchSpec, instances int64) (map[string]subnetChoice,
	error) {
	list, err := s.network.Subnets(ctx, spec.class)
	if err != nil {
		return nil, fmt.Errorf("finding subnets of EC2NodeClass %s: %w", spec.Class, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := map[string]bool{}
	for _, zone := range spec.zones() {
		wanted[zone] = true
	}
	picks, best := map[string]subnetChoice{}, map[string]subnetRank{}
	for _, n := range list {
		if !wanted[n.Zone] || s.isRefused(&n) {
			continue
		}
		have, some := picks[n.Zone]
		this := subnetRank{s.isAvoided(n.ID), int64(n.FreeIPs) - s.inFlight(&n), n.ID}
		spare := some && !this.avoided && !best[n.Zone].avoided
		if !some || this.before(best[n.Zone]) {
			have.subnet, best[n.Zone] = n.ID, this
		}
		picks[n.Zone] = subnetChoice{subnet: have.subnet, hasAlternative: have.hasAlternative || spare}
	}
	for _, p := range picks {
		s.pending[p.subnet] += instances * spec.addresses()
	}
	return picks, nil
}

// subnetRank is what a subnet is chosen by.
type subnetRank struct {
	avoided bool
	free    int64
	id      string
}

// before tells whether the subnet is to be preferred.
func (r subnetRank) before(other subnetRank) bool {
	if r.avoided != other.avoided {
		return other.avoided
	}
	return r.free > other.free || r.free == other.free && r.id < other.id
}

// isAvoided tells whether EC2 has called the subnet full or unknown a while ago. The lock is held.
func (s *subnetChooser) isAvoided(id string) bool {
	at, ok := s.avoided[id]
	if ok && s.now().Sub(at) >= avoidedFor {
		delete(s.avoided, id)
		return false
	}
	return ok
}

// isRefused tells whether EC2 has called the subnet full or unknown since it was last read: then it is not even a last
// resort. The lock is held.
func (s *subnetChooser) isRefused(n *network.Subnet) bool {
	at, ok := s.avoided[n.ID]
	return ok && !n.ReadAt.After(at)
}

// inFlight is how many addresses launches take that the count does not show. The lock is held.
func (s *subnetChooser) inFlight(n *network.Subnet) int64 {
	sum := s.pending[n.ID]
	kept := s.taken[n.ID][:0]
	for _, t := range s.taken[n.ID] {
		if n.ReadAt.Before(t.at.Add(settlesIn)) {
			kept = append(kept, t)
			sum += t.addresses
		}
	}
	if len(kept) == 0 {
		delete(s.taken, n.ID)
	} else {
		s.taken[n.ID] = kept
	}
	return sum
}

// done notes how many instances of the order went to which subnet.
func (s *subnetChooser) done(spec *launchSpec, picks map[string]subnetChoice, instances int64, used map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range picks {
		if s.pending[p.subnet] -= instances * spec.addresses(); s.pending[p.subnet] <= 0 {
			delete(s.pending, p.subnet)
		}
	}
	for subnet, count := range used {
		s.taken[subnet] = append(s.taken[subnet], addressesTaken{addresses: count * spec.addresses(), at: s.now()})
	}
}

// avoid notes that EC2 has called the subnet full or unknown.
func (s *subnetChooser) avoid(subnet string) {
	if subnet == "" {
		return
	}
	s.mu.Lock()
	s.avoided[subnet] = s.now()
	s.mu.Unlock()
	s.network.ForgetSubnet(subnet)
}
