package observe

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// DisruptionPath is where Disruption is to be served.
const DisruptionPath = "/debug/tenon/disruption"

// report is what disruption is about, as data.
type report struct {
	// SearchedAt is when the last search for cheaper nodes came to its end; nil before the first.
	SearchedAt *time.Time    `json:"searchedAt"`
	Took       string        `json:"took,omitempty"`
	UnderWay   []servedGoing `json:"underWay"`
	Found      []servedMove  `json:"found"`
	Stays      []servedStay  `json:"stays"`
}

// servedMove is a move that the last search has found, whether it was begun or not: the nodes of one that was not are among
// those that stay.
type servedMove struct {
	Move           string   `json:"move"`
	Command        string   `json:"command"`
	Reason         string   `json:"reason"`
	NodePools      []string `json:"nodePools"`
	Nodes          []string `json:"nodes"`
	Replacements   int      `json:"replacements"`
	SavingPerMonth float64  `json:"savingPerMonth"`
	Pods           int      `json:"pods"`
	DryRun         bool     `json:"dryRun,omitempty"`
}

// servedGoing is a move that is under way.
type servedGoing struct {
	Move         string   `json:"move"`
	Reason       string   `json:"reason"`
	NodePools    []string `json:"nodePools"`
	NodeClaims   []string `json:"nodeClaims"`
	Nodes        []string `json:"nodes"`
	Replacements []string `json:"replacements"`
}

// servedStay is a node that stays.
type servedStay struct {
	Node           string     `json:"node"`
	NodeClaim      string     `json:"nodeClaim"`
	NodePool       string     `json:"nodePool"`
	Why            string     `json:"why"`
	Message        string     `json:"message"`
	Pod            string     `json:"pod,omitempty"`
	Budget         string     `json:"podDisruptionBudget,omitempty"`
	Since          time.Time  `json:"since"`
	Until          *time.Time `json:"until,omitempty"`
	SavingPerMonth float64    `json:"savingPerMonth,omitempty"`
	NeededPerMonth float64    `json:"neededPerMonth,omitempty"`
}

// Disruption serves what is being disrupted, what could be, and why each other node stays, as JSON. The parameters node, nodepool
// and why pick some of it. Only the replica that leads has something to say.
func (o *Observer) Disruption() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		pick := picker{node: query.Get("node"), pool: query.Get("nodepool"), why: query.Get("why")}
		out := report{UnderWay: []servedGoing{}, Found: []servedMove{}, Stays: []servedStay{}}
		if p := o.state.latest.Load(); p != nil {
			out.underWay(p.Snapshot, pick)
		}
		if sr := o.state.search.Load(); sr != nil {
			out.searched(sr, pick)
		}
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(out) // whoever has gone away does not want it
	})
}

// picker says what is asked for; what is empty is not asked about.
type picker struct{ node, pool, why string }

func (p *picker) wants(nodes, pools []string) bool {
	return p.why == "" && (p.node == "" || slices.Contains(nodes, p.node)) && (p.pool == "" || slices.Contains(pools, p.pool))
}

func (r *report) underWay(s *cluster.Snapshot, pick picker) {
	for _, move := range underWayMoves(s) {
		g := servedGoing{Move: move, Reason: string(moveReason(move)), Replacements: []string{}}
		for _, c := range s.Members(move) {
			g.NodeClaims = append(g.NodeClaims, c.Name)
		}
		g.Nodes, g.NodePools = whoGoes(s, g.NodeClaims)
		if !pick.wants(g.Nodes, g.NodePools) {
			continue
		}
		for _, c := range s.Claims {
			if c.Replaces == move {
				g.Replacements = append(g.Replacements, c.Name)
			}
		}
		r.UnderWay = append(r.UnderWay, g)
	}
}

func (r *report) searched(sr *search, pick picker) {
	r.SearchedAt, r.Took = &sr.at, sr.took.String()
	for i := range sr.moves {
		m := &sr.moves[i]
		if !pick.wants(m.nodes, m.pools) {
			continue
		}
		r.Found = append(r.Found, servedMove{Move: m.ID, Command: decision(len(m.Bins) > 0), Reason: string(m.Reason), NodePools: m.pools, Nodes: m.nodes,
			Replacements: len(m.Bins), SavingPerMonth: rounded((m.Before - m.After) * hoursPerMonth), Pods: m.Evicted, DryRun: m.dryRun})
	}
	for i := range sr.stays {
		st := &sr.stays[i]
		if pick.node != "" && pick.node != st.Node || pick.pool != "" && pick.pool != st.pool || pick.why != "" && pick.why != string(st.Why) {
			continue
		}
		one := servedStay{Node: st.Node, NodeClaim: st.Claim, NodePool: st.pool, Why: string(st.Why), Message: sr.text(st), Pod: st.Pod, Budget: st.Guard,
			Since: st.since, SavingPerMonth: rounded(st.Saving * hoursPerMonth), NeededPerMonth: rounded(st.Needed * hoursPerMonth)}
		if !st.Until.IsZero() {
			one.Until = &st.Until
		}
		r.Stays = append(r.Stays, one)
	}
}
