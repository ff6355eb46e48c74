package destination

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// Query is what a placement of the pods of moves depends on.
type Query struct {
	// Key are the snapshot's revisions, the moves, and the hosts that are gone or take no pods; empty if the snapshot
	// does not tell its revisions.
	Key string
	// others is where other placements of the plan put pods, and podsBetweenNodes are the pods that are between two
	// nodes: both may be others by the time alone, be it that pods are no longer counted or that a deadline has come
	// near.
	others           Others
	podsBetweenNodes []*cluster.Pod
}

// QueryFor tells two placements apart.
func (vf *Verifier) QueryFor(moves []*Move, gone, avoid []string, o *Others) Query {
	if vf.s.DemandRev == 0 || vf.s.SupplyRev == 0 {
		return Query{}
	}
	slices.Sort(gone)
	ids := make([]string, len(moves))
	for i, m := range moves {
		ids[i] = m.ID
	}
	list := func(names []string) string { return strings.Join(names, "\x00") }
	return Query{
		Key: strings.Join([]string{strconv.FormatUint(vf.s.DemandRev, 36), strconv.FormatUint(vf.s.SupplyRev, 36),
			list(ids), list(slices.Compact(gone)), list(avoid)}, "\x01"),
		others:           Others{PlacedOn: maps.Clone(o.PlacedOn), Handled: o.Handled},
		podsBetweenNodes: vf.podsBetweenNodes,
	}
}

// SameAnswer reports whether two questions have the same answer.
func (q *Query) SameAnswer(other *Query) bool {
	return q.Key != "" && q.Key == other.Key && samePods(q.podsBetweenNodes, other.podsBetweenNodes) &&
		maps.Equal(q.others.Handled, other.others.Handled) && maps.EqualFunc(q.others.PlacedOn,
		other.others.PlacedOn, samePods)
}

func samePods(a, b []*cluster.Pod) bool {
	return slices.EqualFunc(a, b, func(p, q *cluster.Pod) bool { return p.UID == q.UID })
}

// DepartureAnswer is which moves of those that were ready might go.
type DepartureAnswer struct {
	Query     Query
	MayDepart map[string]bool
}
