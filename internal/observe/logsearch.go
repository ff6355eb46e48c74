package observe

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/observe/search"
)

// Searched tells what a search for cheaper nodes came to.
func (o *Observer) Searched(s *cluster.Snapshot, p *disrupt.Proposal, took time.Duration) {
	o.tellFaults(p.Faults)
	ls := search.NewResult(s, p, took, o.now(), o.state.Search.Load())
	o.state.Search.Store(ls)
	o.metrics.Searched(s, ls)
	o.logSearch(s, ls)
	o.events.TellBlocked(s, ls)
}

// logSearch writes what was found, and to those who look closer why the other nodes stay.
func (o *Observer) logSearch(s *cluster.Snapshot, ls *search.Result) {
	nodes, pods, replacements := 0, 0, 0
	var ids []string
	for i := range ls.Moves {
		m := &ls.Moves[i]
		nodes, pods, replacements = nodes+len(m.Claims), pods+m.Evicted, replacements+len(m.Bins)
		ids = append(ids, m.ID)
		o.log.V(1).Info("found a move", moveValues(s, &m.Move, true)...)
	}
	values := []any{"moves", len(ls.Moves), "nodes", nodes, "replacements", replacements, "saving-per-month",
		search.Rounded(ls.Saving() * search.HoursPerMonth),
		"pods", pods, "stays", len(ls.Blocked), "duration", ls.Took.String()}
	// Where budgets hold the moves back, the next searches find the same ones.
	if len(ids) > 0 && o.events.RecentLogs.Learn("search", o.events.RecentLogs.Hash(strings.Join(ids, " "))) {
		o.log.Info("found a cheaper way to run the cluster's pods", values...)
	} else {
		o.log.V(1).Info("searched for cheaper nodes", values...)
	}
	debug := o.log.V(1)
	if !debug.Enabled() || len(ls.Blocked) == 0 {
		return
	}
	byWhy := make(map[string]int)
	for i := range ls.Blocked {
		byWhy[string(ls.Blocked[i].Reason)]++
	}
	var counts []any
	for _, reason := range slices.Sorted(maps.Keys(byWhy)) {
		counts = append(counts, reason, byWhy[reason])
	}
	debug.Info("nodes stay", counts...)
	o.logBlocked(ls, ls.Blocked)
}

// logBlocked writes of some nodes why they stay, to those who look closer.
func (o *Observer) logBlocked(s *search.Result, list []search.Blocked) {
	debug := o.log.V(1)
	if !debug.Enabled() {
		return
	}
	for i := range list {
		st := &list[i]
		if o.events.LongLogs.Learn(st.Claim, o.events.LongLogs.Hash(string(st.Reason)+st.Pod+st.PDB)) {
			debug.Info("node stays", "NodeClaim", st.Claim, "Node", st.Node, "NodePool", st.Pool, "reason", st.Reason,
				"detail", s.Text(st))
		}
	}
}
