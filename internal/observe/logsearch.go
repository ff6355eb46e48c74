package observe

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// Searched tells what a search for cheaper nodes came to.
func (o *Observer) Searched(s *cluster.Snapshot, p *disrupt.Proposal, took time.Duration) {
	o.tellFaults(p.Faults)
	ls := newLastSearch(s, p, took, o.now(), o.state.search.Load())
	o.state.search.Store(ls)
	o.metrics.searched(s, ls)
	o.logSearch(s, ls)
	o.events.tellBlocked(s, ls)
}

// logSearch writes what was found, and to those who look closer why the other nodes stay.
func (o *Observer) logSearch(s *cluster.Snapshot, ls *lastSearch) {
	nodes, pods, replacements := 0, 0, 0
	var ids []string
	for i := range ls.moves {
		m := &ls.moves[i]
		nodes, pods, replacements = nodes+len(m.Claims), pods+m.Evicted, replacements+len(m.Bins)
		ids = append(ids, m.ID)
		o.log.V(1).Info("found a move", moveValues(s, &m.Move, true)...)
	}
	values := []any{"moves", len(ls.moves), "nodes", nodes, "replacements", replacements, "saving-per-month",
		rounded(ls.saving() * hoursPerMonth),
		"pods", pods, "stays", len(ls.blocked), "duration", ls.took.String()}
	// Where budgets hold the moves back, the next searches find the same ones.
	if len(ids) > 0 && o.events.recentLogs.learn("search", o.events.recentLogs.hash(strings.Join(ids, " "))) {
		o.log.Info("found a cheaper way to run the cluster's pods", values...)
	} else {
		o.log.V(1).Info("searched for cheaper nodes", values...)
	}
	debug := o.log.V(1)
	if !debug.Enabled() || len(ls.blocked) == 0 {
		return
	}
	byWhy := make(map[string]int)
	for i := range ls.blocked {
		byWhy[string(ls.blocked[i].Reason)]++
	}
	var counts []any
	for _, reason := range slices.Sorted(maps.Keys(byWhy)) {
		counts = append(counts, reason, byWhy[reason])
	}
	debug.Info("nodes stay", counts...)
	o.logBlocked(ls, ls.blocked)
}

// logBlocked writes of some nodes why they stay, to those who look closer.
func (o *Observer) logBlocked(s *lastSearch, list []blockedSince) {
	debug := o.log.V(1)
	if !debug.Enabled() {
		return
	}
	for i := range list {
		st := &list[i]
		if o.events.longLogs.learn(st.Claim, o.events.longLogs.hash(string(st.Reason)+st.Pod+st.PDB)) {
			debug.Info("node stays", "NodeClaim", st.Claim, "Node", st.Node, "NodePool", st.pool, "reason", st.Reason,
				"detail", s.text(st))
		}
	}
}
