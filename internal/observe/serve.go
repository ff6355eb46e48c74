package observe

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/observe/search"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// DisruptionPath is where Disruption is to be served.
const DisruptionPath = "/debug/tenon/disruption"

// disruptionReport is what disruption is about, as data.
type disruptionReport struct {
	// SearchedAt is when the last search for cheaper nodes came to its end; nil before the first.
	SearchedAt *time.Time      `json:"searchedAt"`
	Took       string          `json:"took,omitempty"`
	UnderWay   []servedGoing   `json:"underWay"`
	Found      []servedMove    `json:"found"`
	Blocked    []servedBlocked `json:"stays"`
}

// servedMove is a move that the last search has found, whether it was begun or not: the nodes of one that was not are
// among those that stay.
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

// servedBlocked is a node that stays.
type servedBlocked struct {
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

// Disruption serves what is being disrupted, what could be, and why each other node stays, as JSON. The parameters
// node, nodepool and why pick some of it. Only the replica that leads has something to say.
func (o *Observer) Disruption() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		pick := filter{node: query.Get("node"), pool: query.Get("nodepool"), why: query.Get("why")}
		out := disruptionReport{UnderWay: []servedGoing{}, Found: []servedMove{}, Blocked: []servedBlocked{}}
		if p := o.state.Latest.Load(); p != nil {
			out.underWay(p.Snapshot, pick)
		}
		if s := o.state.Search.Load(); s != nil {
			out.searched(s, pick)
		}
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(out) // whoever has gone away does not want it
	})
}

// filter says what is asked for; what is empty is not asked about.
type filter struct{ node, pool, why string }

func (p *filter) matches(nodes, pools []string) bool {
	return p.why == "" && (p.node == "" || slices.Contains(nodes, p.node)) &&
		(p.pool == "" || slices.Contains(pools, p.pool))
}

func (r *disruptionReport) underWay(s *cluster.Snapshot, pick filter) {
	for _, move := range underWayMoves(s) {
		g := servedGoing{Move: move, Reason: string(disrupt.MoveReason(move)), Replacements: []string{}}
		for _, c := range s.MoveClaims(move) {
			g.NodeClaims = append(g.NodeClaims, c.Name)
		}
		g.Nodes, g.NodePools = search.NodesAndPools(s, g.NodeClaims)
		if !pick.matches(g.Nodes, g.NodePools) {
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

func (r *disruptionReport) searched(s *search.Result, pick filter) {
	r.SearchedAt, r.Took = &s.At, s.Took.String()
	for i := range s.Moves {
		m := &s.Moves[i]
		if !pick.matches(m.Nodes, m.Pools) {
			continue
		}
		r.Found = append(r.Found, servedMove{Move: m.ID, Command: series.Decision(len(m.Bins) > 0),
			Reason:    string(m.Reason),
			NodePools: m.Pools, Nodes: m.Nodes,
			Replacements: len(m.Bins), SavingPerMonth: search.Rounded((m.Before - m.After) * search.HoursPerMonth),
			Pods:   m.Evicted,
			DryRun: m.DryRun})
	}
	for i := range s.Blocked {
		st := &s.Blocked[i]
		if pick.node != "" && pick.node != st.Node || pick.pool != "" && pick.pool != st.Pool || pick.why != "" &&
			pick.why != string(st.Reason) {
			continue
		}
		one := servedBlocked{Node: st.Node, NodeClaim: st.Claim, NodePool: st.Pool, Why: string(st.Reason),
			Message: s.Text(st), Pod: st.Pod, Budget: st.PDB,
			Since: st.Since, SavingPerMonth: search.Rounded(st.Saving * search.HoursPerMonth),
			NeededPerMonth: search.Rounded(st.NeededSaving * search.HoursPerMonth)}
		if !st.Until.IsZero() {
			one.Until = &st.Until
		}
		r.Blocked = append(r.Blocked, one)
	}
}

// underWayMoves lists the names of the moves that are under way.
func underWayMoves(s *cluster.Snapshot) []string {
	seen := make(map[string]bool)
	for _, c := range s.Claims {
		if c.Move != "" {
			seen[c.Move] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
