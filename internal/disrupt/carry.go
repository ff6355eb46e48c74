package disrupt

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Orders are what carrying moves on depends on besides the snapshot and the settings.
type Orders struct {
	// Ledger is what budgets leave; nil for what they leave by the snapshot.
	Ledger *Ledger
	// Placement is where this plan sends pods that have no place; Commands are what it does otherwise.
	Placement *schedule.Placement
	Commands  []command.Command
	// Found is what a search has found since the last plan, or nil.
	Found *Proposal
	// Repair says which nodes are sick, Static whether static pools are served.
	Repair RepairSettings
	Static bool
	// Before is what was verified last, or nil.
	Before *Memo
}

// Carry brings the moves that are under way a step further and begins new ones: nodes that are sick, drifted or near the end
// of their life, and what a search has found.
//
// A move is a set of nodes that go together. Its nodes are fenced first. When a later snapshot shows all fences, their pods
// are placed again as if the nodes were gone; what that takes in new nodes is made, and awaited. Once every pod has a place on
// a node that is up, it is asked once more, and then the nodes go. Whatever no longer holds on the way takes the fences down
// again. Nothing of that is remembered: claims say which move they go in or replace.
func Carry(s *cluster.Snapshot, set Settings, o Orders) (Result, *Memo) {
	d := newDesk(s, set, o)

	// 1. What is under way: who may no longer go, whether people and pods say so or the budgets.
	d.gather()
	d.weed()
	d.balance()

	// 2. What has to be replaced whatever it costs.
	d.repair()
	d.drift()
	d.softExpiry()

	// 3. Where would the pods go if all these nodes were gone?
	d.verify()

	// 4. Accordingly nodes are fenced, replaced, deleted or opened again.
	d.proceed()
	d.begin(o.Found)
	return d.Result, d.memo
}

// desk is the work on one plan's moves.
type desk struct {
	// interrupting says that only nodes are looked at which the cloud takes away.
	interrupting bool
	Result
	s      *cluster.Snapshot
	set    Settings
	orders Orders
	judge  *Judge
	ledger *Ledger
	// needed are the hosts to which the plan sends pods; gone are nodes that other parts of it take away; going are the claims
	// that it deletes.
	needed, gone, going map[string]bool
	// chosen are hosts that kube-scheduler has chosen for pods which the plan sends elsewhere: it may still bind them there.
	chosen map[string]bool
	// wanting are the moves for which something was made that is not up yet, once somebody has asked.
	wanting map[string]bool
	// outs are how many nodes of a pool are out, as far as somebody has asked.
	outs map[purse]int
	// sick is what ails the nodes that are beyond hope, by claim.
	sick   map[string]illness
	clinic *Clinic
	// forced are pods that will have to leave at the deadline of an interrupted or sick node, whatever they say, by UID.
	forced map[string]bool
	// groups are the moves, the oldest first.
	groups []*group
	// due and saving are where the pods of moves would go that have to be, and of those that save money.
	due, saving *schedule.Placement
	// sought are the hosts to which pods go in these that are of no move.
	sought     map[string]bool
	departures []departure
	// dropped are nodes that stay although their moves go on.
	dropped []dropped
	// homeless are the pods that are between two nodes, once they are counted.
	homeless []*cluster.Pod
	counted  bool
	// totals are what balances are measured against, once somebody asks.
	totals Totals
	memo   *Memo
	before *Memo
	// fencing says that a fence is being put up of which it is not known yet in which move it is.
	fencing bool
}

func newDesk(s *cluster.Snapshot, set Settings, o Orders) *desk {
	d := &desk{s: s, set: set, orders: o, before: o.Before, judge: NewJudge(s, set), ledger: o.Ledger,
		needed: make(map[string]bool), gone: make(map[string]bool), going: make(map[string]bool), outs: make(map[purse]int),
		sought: make(map[string]bool), clinic: NewClinic(s, o.Repair)}
	if d.before == nil {
		d.before = &Memo{}
	}
	if d.ledger == nil {
		d.ledger = NewLedger(s)
	}
	if o.Placement != nil {
		for i := range o.Placement.Assigned {
			d.needed[o.Placement.Assigned[i].Host] = true
		}
		d.chosen = chosenHosts(o.Placement)
	}
	opened := make(map[string]bool)
	for _, c := range o.Commands {
		switch c := c.(type) {
		case command.Fence:
			d.gone[c.Node] = true
		case command.DeleteClaim:
			d.gone[c.Node], d.going[c.Claim] = true, true
		case command.Unfence:
			opened[c.Node] = true
		}
	}
	for _, n := range s.Nodes {
		if c := s.ClaimOf(n.Name); c != nil && (hurried(c) || c.Move == "" && Fenced(c, n) && !opened[n.Name]) {
			d.gone[n.Name] = true
		}
	}
	delete(d.gone, "")
	return d
}

func (d *desk) wake(at time.Time) { d.WakeAt = cluster.Earlier(d.WakeAt, at) }

func (d *desk) do(c command.Command) { d.Commands = append(d.Commands, c) }

// Identity tells a claim from all others, those included that had the same name before it: names derive from what claims are for,
// and come back.
func Identity(c *cluster.Claim) string {
	if c.UID == "" {
		return c.Name
	}
	return c.Name + "/" + c.UID
}

// MoveID names a move of the claims with these identities. The same nodes and reason give the same name, and others never do; the
// reason can be read off it.
func MoveID(reason command.Reason, claims []string) string {
	h := sha256.New()
	for _, id := range slices.Sorted(slices.Values(claims)) {
		h.Write([]byte(id))
		h.Write([]byte{0})
	}
	sum := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:6])
	return strings.ToLower(string(reason) + "-" + sum)
}

// ReasonOf is the reason of a move by its name; empty if it is none of ours.
func ReasonOf(move string) command.Reason {
	word, _, _ := strings.Cut(move, "-")
	switch word {
	case "underutilized":
		return command.Underutilized
	case "drifted":
		return command.Drifted
	case "expired":
		return command.Expired
	case "unhealthy":
		return command.Unhealthy
	case "interrupted":
		return command.Interrupted
	case "empty":
		return command.Empty
	}
	return ""
}
