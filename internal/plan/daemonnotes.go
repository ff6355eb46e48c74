package plan

import (
	"fmt"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
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
				Warning: true, Reason: FitsNowhere, Message: omittedMessage(o),
			})
		}
	}
	for _, pool := range s.Pools {
		if names := byPool[pool.Name]; len(names) > 0 {
			text := fmt.Sprintf("No instance type of the pool has room for a pod of %s; "+
				"no room is kept for them on new nodes", nameSome(names))
			p.Notes = append(p.Notes, asWarning(pool.Note(DaemonSetsOmitted, text)))
		}
	}
	for i := range p.Placement.Squeezed {
		q := &p.Placement.Squeezed[i]
		if pool := s.Pool(q.Pool); pool != nil {
			text := fmt.Sprintf("All DaemonSets together leave no room for pods like %s/%s "+
				"on any instance type that suits them; new nodes for these pods do not have room for all DaemonSets. "+
				"Lower the requests of the DaemonSets, or delete some", q.Pod.Namespace, q.Pod.Name)
			p.Notes = append(p.Notes, asWarning(pool.Note(DaemonSetsSqueezed, text)))
		}
	}
}

func omittedMessage(o *schedule.OmittedDaemon) string {
	text := fmt.Sprintf("No instance type of NodePool %s has room for the pods of this DaemonSet", o.Pool)
	if o.Resource != "" {
		most := "the largest instance type that suits them has "
		if o.TakenByHigher {
			most = "DaemonSets of higher priority leave at most "
		}
		text += fmt.Sprintf(": each asks for %s %s, and %s%s", o.Resource, o.Requested, most, o.Most)
	}
	return text + "; no room is kept for them on new nodes. Lower their requests, or let them run on other nodes only"
}

// nameSome names the first of a list and counts the rest.
func nameSome(names []string) string {
	if more := len(names) - namedDaemons; more > 0 {
		return fmt.Sprintf("DaemonSets %s and %d more", strings.Join(names[:namedDaemons], ", "), more)
	}
	return "DaemonSets " + strings.Join(names, ", ")
}
