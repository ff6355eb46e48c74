package disrupt

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// question is what a placement of the pods of moves depends on.
type question struct {
	// asked are the snapshot's revisions, the moves, and the hosts that are gone or take no pods; empty if the snapshot does not tell
	// its revisions.
	asked string
	// room is where other placements of the plan put pods, and homeless are the pods that are between two nodes: both may be others by
	// the time alone, be it that pods are no longer counted or that a deadline has come near.
	room     room
	homeless []*cluster.Pod
}

// question tells two placements apart.
func (d *desk) question(groups []*group, gone, avoid []string, r *room) question {
	if d.s.Demand == 0 || d.s.Supply == 0 {
		return question{}
	}
	slices.Sort(gone)
	ids := make([]string, len(groups))
	for i, g := range groups {
		ids[i] = g.id
	}
	list := func(names []string) string { return strings.Join(names, "\x00") }
	return question{
		asked: strings.Join([]string{strconv.FormatUint(d.s.Demand, 36), strconv.FormatUint(d.s.Supply, 36),
			list(ids), list(slices.Compact(gone)), list(avoid)}, "\x01"),
		room: room{on: maps.Clone(r.on), cared: r.cared}, homeless: d.homeless,
	}
}

// same reports whether two questions have the same answer.
func (q *question) same(other *question) bool {
	return q.asked != "" && q.asked == other.asked && samePods(q.homeless, other.homeless) &&
		maps.Equal(q.room.cared, other.room.cared) && maps.EqualFunc(q.room.on, other.room.on, samePods)
}

func samePods(a, b []*cluster.Pod) bool {
	return slices.EqualFunc(a, b, func(p, q *cluster.Pod) bool { return p.UID == q.UID })
}
