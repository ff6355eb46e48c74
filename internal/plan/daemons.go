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
	// mostDaemonNotes is how many DaemonSets are told of themselves in one plan, and namedDaemons how many a pool names.
	mostDaemonNotes = 20
	namedDaemons    = 3
)

// tellDaemons tells of DaemonSets for which nodes that are planned have no room.
func (p *Plan) tellDaemons(s *cluster.Snapshot) {
	told := make(map[string]bool)
	byPool := make(map[string][]string)
	for i := range p.Placement.Omitted {
		o := &p.Placement.Omitted[i]
		byPool[o.Pool] = append(byPool[o.Pool], o.Daemon.Namespace+"/"+o.Daemon.Name)
		if !o.Elsewhere && !told[o.Daemon.UID] && len(told) < mostDaemonNotes {
			told[o.Daemon.UID] = true
			p.Notes = append(p.Notes, cluster.Note{Kind: "DaemonSet", Namespace: o.Daemon.Namespace, Name: o.Daemon.Name, UID: o.Daemon.UID,
				Warning: true, Reason: FitsNowhere, Message: fitsNowhere(o)})
		}
	}
	for _, pool := range s.Pools {
		if names := byPool[pool.Name]; len(names) > 0 {
			p.Notes = append(p.Notes, warn(pool.Note(DaemonSetsOmitted, fmt.Sprintf(
				"No instance type of the pool has room for a pod of %s; new nodes are planned as if they were not there", someOf(names)))))
		}
	}
	for i := range p.Placement.Squeezed {
		q := &p.Placement.Squeezed[i]
		if pool := s.Pool(q.Pool); pool != nil {
			p.Notes = append(p.Notes, warn(pool.Note(DaemonSetsSqueezed, fmt.Sprintf("DaemonSets together leave no room for pods like %s/%s on any instance type that suits them; "+
				"nodes are made on which not all DaemonSets find room. Ask for less in DaemonSets, or delete some", q.Pod.Namespace, q.Pod.Name))))
		}
	}
}

func fitsNowhere(o *schedule.Omission) string {
	text := fmt.Sprintf("No instance type of NodePool %s has room for its pods", o.Pool)
	if o.Resource != "" {
		text += fmt.Sprintf(": they ask for %s %s, and %s is left beside the DaemonSets that come before it", o.Resource, o.Asked, o.Most)
	}
	return text + "; new nodes are planned as if the DaemonSet were not there. Ask for less, or let its pods run on other nodes only"
}

// someOf names the first of a list and counts the rest.
func someOf(names []string) string {
	if more := len(names) - namedDaemons; more > 0 {
		return fmt.Sprintf("DaemonSets %s and %d more", strings.Join(names[:namedDaemons], ", "), more)
	}
	return "DaemonSets " + strings.Join(names, ", ")
}
