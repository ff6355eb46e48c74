package events

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/observe/search"
)

// blockTeller tells nodes why they stay, a few at a time: there may be thousands, and it is no hurry. Only the loop's
// own goroutine touches it.
type blockTeller struct {
	// search is what is being told; next is when to go on.
	search *search.Result
	next   time.Time
	// turn is where the next round begins.
	turn int
}

const (
	// toldAgain is how long a node is not told again why it stays. Events are kept for an hour by default.
	toldAgain = time.Hour
	// WorthTelling is how long a reason that usually passes must have held.
	WorthTelling = 5 * time.Minute
	// While some have not been told they are gone through every tellEvery, and afterwards every reviewEvery.
	tellEvery, reviewEvery = time.Second, time.Minute

	unconsolidatable  = "Unconsolidatable"
	disruptionBlocked = "DisruptionBlocked"
)

// TellBlocked tells nodes and claims why they stay. What the reason is about is part of the news, its figures are not:
// they change a little with every search.
func (e *Teller) TellBlocked(s *cluster.Snapshot, ls *search.Result) {
	t, now := &e.blockTeller, e.now()
	if ls == nil || len(ls.Blocked) == 0 || t.search == ls && now.Before(t.next) {
		return
	}
	t.search, t.next = ls, now.Add(tellEvery)
	start, waiting := t.turn%len(ls.Blocked), -1
	for i := range ls.Blocked {
		at := (start + i) % len(ls.Blocked)
		st := &ls.Blocked[at]
		if search.IsPassing(st.Reason) && now.Sub(st.Since) < WorthTelling {
			continue
		}
		if !e.tellBlockedNode(s, ls, st) && waiting < 0 {
			waiting = at
		}
		if waiting >= 0 && e.isExhausted(now) {
			break
		}
	}
	if waiting >= 0 {
		t.turn = waiting
		return
	}
	t.next = now.Add(reviewEvery)
}

// tellBlockedNode tells one node and its claim; it reports false if there is no room for more events of the kind.
func (e *Teller) tellBlockedNode(s *cluster.Snapshot, ls *search.Result, st *search.Blocked) bool {
	if st.Reason == disrupt.DryRun {
		return true // it is told what would be done instead
	}
	c := s.Claim(st.Claim)
	if c == nil || c.UID == "" || !c.Deleting.IsZero() || c.Move != "" {
		return true // it is no longer news
	}
	reason := unconsolidatable
	if search.IsDisruptionBlocked(st.Reason) {
		reason = disruptionBlocked
	}
	summary := e.LongEvents.Hash(reason + string(st.Reason) + st.Pod + st.PDB)
	if e.LongEvents.knows(c.UID, summary) {
		return true
	}
	if !e.limiters[reason].allow(e.now()) {
		return false
	}
	e.LongEvents.Learn(c.UID, summary)
	text := ls.Text(st)
	if n := s.NodeOf(st.Claim); n != nil {
		e.write(nodeRef(n), normal, reason, "Disrupting", text)
	}
	e.write(claimRef(c.Name, c.UID), normal, reason, "Disrupting", text)
	return true
}

// isExhausted reports whether neither kind of event has room left.
func (e *rationed) isExhausted(now time.Time) bool {
	return !e.limiters[unconsolidatable].has(now) && !e.limiters[disruptionBlocked].has(now)
}
