package lifecycle

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// sale names an offering, whichever catalog it is in.
type sale struct{ kind, zone, terms string }

// verdict is what becomes of a claim that would like to be launched.
type verdict int

const (
	ask verdict = iota
	wait
	hopeless
	held
)

// queue lets claims launch one at a time where it is not known whether the cloud will have them: one answer speaks for all,
// and nobody is served sooner by asking more often.
type queue struct {
	s *cluster.Snapshot
	// doubtful says, by catalog, whether it has offerings that are sold out or on trial.
	doubtful map[*cluster.Catalog]bool
	// trying are the offerings on trial for which a launch is under way.
	trying map[sale]bool
	// probe is the claim that finds out whether a held pool can launch again, by pool.
	probe map[string]string
}

func newQueue(s *cluster.Snapshot) *queue {
	return &queue{s: s, doubtful: make(map[*cluster.Catalog]bool), probe: make(map[string]string)}
}

// ask says whether the claim may be launched now, and if it has to wait until when; zero for until something happens.
func (q *queue) ask(c *cluster.Claim) (v verdict, until time.Time) {
	p := q.s.Pool(c.Pool)
	if p == nil {
		return ask, time.Time{}
	}
	var trials []sale
	if q.inDoubt(p) {
		left, known := prospects(p, c)
		if known && len(left) == 0 && !attempted(q.s, c) {
			return hopeless, time.Time{}
		}
		trials = left
	}
	if p.Held || p.OnTrial {
		if v, until := q.probing(p, c); v != ask {
			return v, until
		}
	}
	if len(trials) > 0 && !q.try(trials, q.delayed(c)) {
		return wait, time.Time{}
	}
	return ask, time.Time{}
}

// longHold is how long a hold must have to go for a pool's claims to be given up: their pods may have a place elsewhere.
const longHold = 10 * time.Second

// probing says what becomes of a claim whose pool's launches have failed: one waits to find out when they go well again; the
// others wait for it, and go if that takes long.
func (q *queue) probing(p *cluster.Pool, c *cluster.Claim) (v verdict, until time.Time) {
	first := q.prober(p) == c.Name
	switch {
	case p.Held && !first && !q.s.Now.Add(longHold).After(p.HeldUntil):
		return held, time.Time{}
	case p.Held:
		return wait, p.HeldUntil
	case !first:
		return wait, time.Time{}
	}
	return ask, time.Time{}
}

// inDoubt reports whether the pool's catalog has anything that might be refused.
func (q *queue) inDoubt(p *cluster.Pool) bool {
	if p.Catalog == nil {
		return false
	}
	doubtful, known := q.doubtful[p.Catalog]
	if !known {
		for i := range p.Catalog.Offerings {
			if o := &p.Catalog.Offerings[i]; !o.Available || o.Trial {
				doubtful = true
				break
			}
		}
		q.doubtful[p.Catalog] = doubtful
	}
	return doubtful
}

// delayed reports whether the claim's launch has failed and is not due again.
func (q *queue) delayed(c *cluster.Claim) bool {
	r, failed := q.s.Retry[command.LaunchInstance{Claim: c.Name}.Key()]
	return failed && q.s.Now.Before(r.NotBefore)
}

// try takes the offerings for a launch, unless somebody else is at one of them. Who is not going to launch yet takes none.
func (q *queue) try(trials []sale, delayed bool) bool {
	if q.trying == nil {
		q.findTrials()
	}
	for _, t := range trials {
		if q.trying[t] {
			return false
		}
	}
	for _, t := range trials {
		if !delayed {
			q.trying[t] = true
		}
	}
	return true
}

// findTrials notes the offerings on trial of all launches under way.
func (q *queue) findTrials() {
	q.trying = make(map[sale]bool)
	for _, c := range q.s.Claims {
		p := q.s.Pool(c.Pool)
		if p == nil || !q.s.Busy[command.LaunchInstance{Claim: c.Name}.Key()] || !q.inDoubt(p) {
			continue
		}
		trials, _ := prospects(p, c)
		for _, t := range trials {
			q.trying[t] = true
		}
	}
}

// prober is the claim that may try a held pool once its time is over: the one that is being launched already, or the first
// that waits.
func (q *queue) prober(p *cluster.Pool) string {
	if name, known := q.probe[p.Name]; known {
		return name
	}
	first, due := "", false
	for _, c := range q.s.ClaimsOf(p.Name) {
		if c.Expected || !c.Finalized || !c.Deleting.IsZero() || c.Condition(cluster.Launched).Status != cluster.Unknown {
			continue
		}
		if q.s.Busy[command.LaunchInstance{Claim: c.Name}.Key()] {
			first = c.Name
			break
		}
		if soon := !q.delayed(c); first == "" || soon && !due {
			first, due = c.Name, soon
		}
	}
	q.probe[p.Name] = first
	return first
}
