package observe

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// teller tells nodes why they stay, a few at a time: there may be thousands, and it is no hurry. Only the loop's own goroutine
// touches it.
type teller struct {
	// search is what is being told; next is when to go on.
	search *search
	next   time.Time
	// turn is where the next round begins.
	turn int
}

const (
	// toldAgain is how long a node is not told again why it stays. Events are kept for an hour by default.
	toldAgain = time.Hour
	// worthTelling is how long a reason that usually passes must have held.
	worthTelling = 5 * time.Minute
	// While some have not been told they are gone through every tellEvery, and afterwards every reviewEvery.
	tellEvery, reviewEvery = time.Second, time.Minute

	unconsolidatable  = "Unconsolidatable"
	disruptionBlocked = "DisruptionBlocked"
)

// stays tells nodes and claims why they stay. What the reason is about is part of the news, its figures are not: they change a
// little with every search.
func (e *events) stays(s *cluster.Snapshot, sr *search) {
	t, now := &e.teller, e.now()
	if sr == nil || len(sr.stays) == 0 || t.search == sr && now.Before(t.next) {
		return
	}
	t.search, t.next = sr, now.Add(tellEvery)
	start, waiting := t.turn%len(sr.stays), -1
	for i := range sr.stays {
		at := (start + i) % len(sr.stays)
		st := &sr.stays[at]
		if passes(st.Why) && now.Sub(st.since) < worthTelling {
			continue
		}
		if !e.stay(s, sr, st) && waiting < 0 {
			waiting = at
		}
		if waiting >= 0 && e.exhausted(now) {
			break
		}
	}
	if waiting >= 0 {
		t.turn = waiting
		return
	}
	t.next = now.Add(reviewEvery)
}

// stay tells one node and its claim; it reports false if there is no room for more events of the kind.
func (e *events) stay(s *cluster.Snapshot, sr *search, st *stayed) bool {
	if st.Why == disrupt.DryRun {
		return true // it is told what would be done instead
	}
	c := s.Claim(st.Claim)
	if c == nil || c.UID == "" || !c.Deleting.IsZero() || c.Move != "" {
		return true // it is no longer news
	}
	reason := unconsolidatable
	if blocks(st.Why) {
		reason = disruptionBlocked
	}
	gist := e.lasting.hash(reason + string(st.Why) + st.Pod + st.Guard)
	if e.lasting.knows(c.UID, gist) {
		return true
	}
	if !e.rations[reason].take(e.now()) {
		return false
	}
	e.lasting.learn(c.UID, gist)
	text := sr.text(st)
	if n := s.NodeOf(st.Claim); n != nil {
		e.write(nodeRef(n), normal, reason, "Disrupting", text)
	}
	e.write(claimRef(c.Name, c.UID), normal, reason, "Disrupting", text)
	return true
}

// exhausted reports whether neither kind of event has room left.
func (e *events) exhausted(now time.Time) bool {
	return !e.rations[unconsolidatable].has(now) && !e.rations[disruptionBlocked].has(now)
}
