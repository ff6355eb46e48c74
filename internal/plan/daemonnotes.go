package plan

import (
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/reason"
)

// What is told of DaemonSets that new nodes are planned without.
const (
	// FitsNowhere is told on the DaemonSet, DaemonSetsOmitted and DaemonSetsSqueezed on the pool.
	FitsNowhere        = "FitsNowhere"
	DaemonSetsOmitted  = "DaemonSetsOmitted"
	DaemonSetsSqueezed = "DaemonSetsSqueezed"
	// mostDaemonNotes is how many DaemonSets are told of themselves in one plan, and namedDaemons how many a pool
	// names.
	mostDaemonNotes = 20
	namedDaemons    = 3
)

// tellDaemons tells of DaemonSets for which nodes that are planned have no room.
func (p *Plan) tellDaemons(s *cluster.Snapshot) {
	nominated := make(map[string]bool)
	byPool := make(map[string][]string)
	for i := range p.Placement.Omitted {
		o := &p.Placement.Omitted[i]
		byPool[o.Pool] = append(byPool[o.Pool], o.Daemon.Namespace+"/"+o.Daemon.Name)
		if !o.Elsewhere && !nominated[o.Daemon.UID] && len(nominated) < mostDaemonNotes {
			nominated[o.Daemon.UID] = true
			p.Notes = append(p.Notes, cluster.Note{
				Kind: "DaemonSet", Namespace: o.Daemon.Namespace, Name: o.Daemon.Name, UID: o.Daemon.UID,
				Warning: true, Reason: FitsNowhere, Text: omittedText(o),
			})
		}
	}
	for _, pool := range s.Pools {
		if names := byPool[pool.Name]; len(names) > 0 {
			text := reason.Of(reason.DaemonsOmitted, nameSome(names))
			p.Notes = append(p.Notes, asWarning(pool.Note(DaemonSetsOmitted, text)))
		}
	}
	for i := range p.Placement.Squeezed {
		q := &p.Placement.Squeezed[i]
		if pool := s.Pool(q.Pool); pool != nil {
			text := reason.Of(reason.DaemonsSqueezed, q.Pod.Namespace+"/"+q.Pod.Name)
			p.Notes = append(p.Notes, asWarning(pool.Note(DaemonSetsSqueezed, text)))
		}
	}
}

func omittedText(o *market.OmittedDaemon) reason.Text {
	var why reason.Text
	switch {
	case o.Resource == "":
	case o.TakenByHigher:
		why = reason.Of(reason.DaemonCrowdedOut, o.Resource, o.Requested, o.Most)
	default:
		why = reason.Of(reason.DaemonTooLarge, o.Resource, o.Requested, o.Most)
	}
	return reason.Of(reason.DaemonFitsNowhere, o.Pool, why)
}

// nameSome names the first of a list and counts the rest.
func nameSome(names []string) reason.Text {
	if more := len(names) - namedDaemons; more > 0 {
		return reason.Of(reason.AndMore, strings.Join(names[:namedDaemons], ", "), more)
	}
	return reason.Said(strings.Join(names, ", "))
}
