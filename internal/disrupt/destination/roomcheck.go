package destination

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// DeparturesWithoutRoom finds the departures for whose pods there is no longer room on nodes that are up: between the
// plan that lets them go and this snapshot others may have taken it. departures are the names of the nodes that go;
// whatever else commands take away is gone, too, what they fence takes no pods, and the pods that have no node yet are
// where the placement has put them.
func DeparturesWithoutRoom(s *cluster.Snapshot, set disrupt.Settings, placed *schedule.Placement,
	commands []command.Command,
	departures map[string][]string) map[string]bool {
	r := &roomRecheck{Verifier: NewVerifier(s, set),
		others: decidedPending(s, placed), departureNodes: departures,
		departureOf: make(map[string]string), fenced: make(map[string]bool), staying: make(map[string]bool)}
	for name, nodes := range departures {
		for _, n := range nodes {
			r.departureOf[n] = name
		}
	}
	listed := make(map[string]bool)
	for _, cmd := range commands {
		switch cmd := cmd.(type) {
		case command.Fence:
			r.fenced[cmd.Node] = true
		case command.DeleteClaim:
			name := r.departureOf[cmd.Node]
			r.RemovedNodes[cmd.Node] = name == ""
			if name != "" && !listed[name] {
				listed[name] = true
				r.order = append(r.order, name)
			}
		}
	}
	r.gatherPods()
	for round := 1; ; round++ {
		missing := r.lackingRoom()
		if len(missing) == 0 {
			return r.staying
		}
		maps.Copy(r.staying, missing)
		if round >= MaxRounds {
			r.keepLaterHalf()
		}
	}
}

// roomRecheck is the question who of several departures may go, and what is known of the answer.
type roomRecheck struct {
	*Verifier
	others         *Others
	departureNodes map[string][]string
	// order is that of the commands; departureOf is that of a node.
	order       []string
	departureOf map[string]string
	// fenced are nodes that the same plan fences; staying are the departures that stay.
	fenced, staying map[string]bool
}

// gatherPods finds the pods that will be made to leave.
func (r *roomRecheck) gatherPods() {
	for _, n := range slices.Sorted(maps.Keys(r.departureOf)) {
		if claim := r.s.ClaimOf(n); claim != nil && claim.Interruption.IsUrgent() {
			r.ForcePods(claim, r.s.Node(n))
		}
	}
}

// keepLaterHalf lets the later half of the departures stay: where one after the other lacks room because others stay,
// it is not asked once more for each of them.
func (r *roomRecheck) keepLaterHalf() {
	left := slices.DeleteFunc(slices.Clone(r.order), func(name string) bool { return r.staying[name] })
	for _, name := range left[(len(left)+1)/2:] {
		r.staying[name] = true
	}
}

// lackingRoom finds the departures that lack room if all go but those that are out.
func (r *roomRecheck) lackingRoom() map[string]bool {
	gone := r.LeavingAnyway()
	for _, name := range r.order {
		if !r.staying[name] {
			gone = append(gone, r.departureNodes[name]...)
		}
	}
	var closed []string
	for _, n := range r.s.Nodes {
		if r.fenced[n.Name] || r.DistanceOf(n.Name) != AtReadyNode {
			closed = append(closed, n.Name)
		}
	}
	for _, claim := range r.s.Claims {
		if r.s.NodeOf(claim.Name) == nil {
			closed = append(closed, claim.Name)
		}
	}
	answer := r.Place(gone, closed, nil, r.others)
	missing := make(map[string]bool)
	eachPod(&answer, func(p *cluster.Pod, host string) {
		if name := r.departureOf[p.Node]; host == "" && name != "" && !r.staying[name] {
			missing[name] = true
		}
	})
	return missing
}

// MaxRounds bounds how often it is asked who may go without those who may not.
const MaxRounds = 4
