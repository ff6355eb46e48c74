package plan_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// checkFences holds that what is to be done comes before what is to be written down, and that once all is calm no node
// is fenced and opened again and again.
func (m *mover) checkFences(p *plan.Plan) {
	notes := false
	for _, c := range p.Commands {
		if notes && !command.IsStatusUpdate(c) {
			m.fail("%s waits behind a note", c.Key())
		}
		notes = notes || command.IsStatusUpdate(c)
		if f, ok := c.(command.Fence); ok && m.fences != nil {
			if m.fences[f.Node]++; m.fences[f.Node] > 4 { // each time that is given up it rests for longer
				m.fail("%s is fenced for the %d. time", f.Node, m.fences[f.Node])
			}
		}
	}
}

// checkPrice holds that from one rest to the next the cluster does not become dearer by moves that are to save money.
func (m *mover) checkPrice(s *cluster.Snapshot, p *plan.Plan) {
	price, rest := 0.0, true
	for _, c := range s.Claims {
		price += c.Price
		switch n := s.NodeOf(c.Name); {
		case c.Move != "" && disrupt.MoveReason(c.Move) != command.Underutilized:
			m.rested = false // that has its price
			return
		case c.Move != "" || !c.Deleting.IsZero() || n == nil || !c.Is(cluster.Initialized):
			rest = false
		case c.Replaces != "" && disrupt.IsEmpty(s, c, n): // it goes when it may
			rest = false
		}
	}
	if len(p.Placement.Unplaced) > 0 {
		m.rested = false // once there is a place for them it has its price, too
		return
	}
	if takenOver(s, p) {
		m.rested = false
	}
	for _, c := range p.Commands {
		if d, ok := c.(command.DeleteClaim); ok && d.Reason != command.Underutilized && d.Reason != command.Empty {
			m.rested = false
		}
		rest = rest && command.IsStatusUpdate(c)
	}
	if !rest || len(s.Pending())+len(s.PodsBetweenNodes()) > 0 {
		return
	}
	if m.rested && price > m.price+1e-9 {
		m.fail("the cluster costs $%.2f an hour and cost $%.2f before", price, m.price)
	}
	m.price, m.rested = price, true
}

// takenOver reports whether a move is given up while pods of others look for a place: what was made for it may come in
// handy, and then it takes another search to do without it.
func takenOver(s *cluster.Snapshot, p *plan.Plan) bool {
	for _, g := range p.GivenUp {
		own, others := false, len(s.Pending())+len(s.PodsBetweenNodes()) > 0
		for _, c := range s.Claims {
			if !c.Deleting.IsZero() {
				own, others = own || c.Move == g.ID, others || c.Move != g.ID
			}
		}
		if others && !own {
			return true
		}
	}
	return false
}

// spent says which budget the deletions of moves would overrun, if one. What is only fenced has not gone yet.
func spent(s *cluster.Snapshot, p *plan.Plan) string {
	total, out := make(map[string]int), make(map[string]int)
	for _, c := range s.Claims {
		if c.Is(cluster.Initialized) && !c.Is(cluster.InstanceTerminating) {
			total[c.Pool]++
			if n := s.NodeOf(c.Name); n == nil || !c.Deleting.IsZero() || !n.Ready && c.Move == "" {
				out[c.Pool]++
			}
		}
	}
	for _, c := range p.Commands {
		d, ok := c.(command.DeleteClaim)
		if !ok || !s.Claim(d.Claim).Is(cluster.Initialized) || s.Pool(s.Claim(d.Claim).Pool) == nil {
			continue
		}
		claim := s.Claim(d.Claim)
		out[claim.Pool]++
		if disrupt.MoveReason(claim.Move) != d.Reason || d.Reason == command.Unhealthy ||
			d.Text.Code == reason.TooOld {
			continue
		}
		if over := exceeded(s.Pool(claim.Pool), string(d.Reason), out[claim.Pool], total[claim.Pool]); over != "" {
			return fmt.Sprintf("%s of %s: %s", d.Reason, d.Node, over)
		}
	}
	return ""
}

// longest is how long the node of a claim may stay behind a fence: twice as long if a node of its move has rested.
func longest(s *cluster.Snapshot, c *cluster.Claim) time.Duration {
	if slices.ContainsFunc(s.MoveClaims(c.Move), func(c *cluster.Claim) bool { return c.Rests+c.SavingRests > 0 }) {
		return 2*moveTimeout + 10*time.Second
	}
	return moveTimeout + 10*time.Second
}

// checkPatience holds that no node stays behind a fence of ours for longer than a move may take, unless that is to be
// taken down and does not come about.
func (m *mover) checkPatience(s *cluster.Snapshot, p *plan.Plan) {
	opened := make(map[string]bool)
	for _, c := range p.Commands {
		if u, ok := c.(command.Unfence); ok {
			opened[u.Node] = true
		}
	}
	for _, n := range s.Nodes {
		c := s.ClaimOf(n.Name)
		if c == nil || !c.Deleting.IsZero() || !n.Deleting.IsZero() || !disrupt.Fenced(c, n) {
			delete(m.since, n.Name)
			continue
		}
		if m.since[n.Name].IsZero() {
			m.since[n.Name] = s.Now
		}
		if s.Now.Sub(m.since[n.Name]) > longest(s, c) && !opened[n.Name] {
			m.fail("%s is fenced since %s", n.Name, m.since[n.Name])
		}
	}
}

// checkDeletes holds the deletions of moves to their rules.
func (m *mover) checkDeletes(s *cluster.Snapshot, p *plan.Plan) {
	var going, fenced []string
	forced := false
	for _, c := range p.Commands {
		if f, ok := c.(command.Fence); ok {
			fenced = append(fenced, f.Node)
		}
		d, ok := c.(command.DeleteClaim)
		if !ok || d.Node == "" {
			continue
		}
		going = append(going, d.Node)
		claim, n := s.Claim(d.Claim), s.Node(d.Node)
		if claim.Move == "" || disrupt.MoveReason(claim.Move) != d.Reason || d.Text.Code == reason.TooOld {
			forced = true // it goes by force, and what it leaves behind is nobody's plan
			continue
		}
		if !n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) {
			m.fail("%s goes without a fence", d.Node)
		}
		for _, pod := range s.PodsOn(d.Node) {
			if pod.DoNotDisrupt && pod.Deleting.IsZero() && !claim.HasTerminationGrace &&
				d.Reason != command.Unhealthy {
				m.fail("%s goes with %s, which must not be disturbed", d.Node, pod.Name)
			}
		}
	}
	if len(going) > 0 && !forced && len(s.SchedulerView().Pending()) == 0 {
		m.checkPlaces(s, going, fenced)
	}
}

// checkPlaces holds that the pods of nodes that go have places on nodes that are up, and are not being fenced at the
// same time.
func (m *mover) checkPlaces(s *cluster.Snapshot, going, fenced []string) {
	moved := make(map[string]bool)
	for _, node := range going {
		for _, pod := range s.PodsOn(node) {
			moved[pod.UID] = true
		}
	}
	unready := make(map[string]bool) // nothing is to depend on these
	for _, c := range s.Claims {
		unready[cluster.HostName(c, s.NodeOf(c.Name))] = !c.Is(cluster.Initialized)
	}
	for _, node := range fenced {
		unready[node] = true
	}
	placed := schedule.Place(s.Without(going...).WithAvoided(unready), schedule.Settings{})
	for i := range placed.Bins {
		for _, pod := range placed.Bins[i].Pods {
			if moved[pod.UID] {
				m.fail("%s would need another node", pod.Name)
			}
		}
	}
	for i := range placed.Unplaced {
		if moved[placed.Unplaced[i].Pod.UID] {
			m.fail("%s would be stranded: %s", placed.Unplaced[i].Pod.Name, render.Unplaced(&placed.Unplaced[i]))
		}
	}
}
