package execute

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// placementQuery is what a placement of the pods of moves depends on.
type placementQuery struct {
	// key are the snapshot's revisions, the moves, and the hosts that are gone or take no pods; empty if the snapshot
	// does not tell its revisions.
	key string
	// others is where other placements of the plan put pods, and podsBetweenNodes are the pods that are between two
	// nodes: both may be others by the time alone, be it that pods are no longer counted or that a deadline has come
	// near.
	others           otherPlacements
	podsBetweenNodes []*cluster.Pod
}

// queryFor tells two placements apart.
func (vf *verifier) queryFor(moves []*activeMove, gone, avoid []string, o *otherPlacements) placementQuery {
	if vf.s.DemandRev == 0 || vf.s.SupplyRev == 0 {
		return placementQuery{}
	}
	slices.Sort(gone)
	ids := make([]string, len(moves))
	for i, m := range moves {
		ids[i] = m.id
	}
	list := func(names []string) string { return strings.Join(names, "\x00") }
	return placementQuery{
		key: strings.Join([]string{strconv.FormatUint(vf.s.DemandRev, 36), strconv.FormatUint(vf.s.SupplyRev, 36),
			list(ids), list(slices.Compact(gone)), list(avoid)}, "\x01"),
		others:           otherPlacements{placedOn: maps.Clone(o.placedOn), handled: o.handled},
		podsBetweenNodes: vf.podsBetweenNodes,
	}
}

// sameAnswer reports whether two questions have the same answer.
func (q *placementQuery) sameAnswer(other *placementQuery) bool {
	return q.key != "" && q.key == other.key && samePods(q.podsBetweenNodes, other.podsBetweenNodes) &&
		maps.Equal(q.others.handled, other.others.handled) && maps.EqualFunc(q.others.placedOn,
		other.others.placedOn, samePods)
}

func samePods(a, b []*cluster.Pod) bool {
	return slices.EqualFunc(a, b, func(p, q *cluster.Pod) bool { return p.UID == q.UID })
}

// departureAnswer is which moves of those that were ready might go.
type departureAnswer struct {
	query     placementQuery
	mayDepart map[string]bool
}
