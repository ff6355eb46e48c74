package offerings

import (
	"cmp"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// A pool whose launches fail for no reason that the next plan could avoid is left alone for a while that grows from
	// FirstLaunchBackoff to longestLaunchBackoff.
	FirstLaunchBackoff   = time.Second
	longestLaunchBackoff = 5 * time.Minute
	// ErrorsToBackOff is how many launches in a row must fail with an error until their pool is held: each is tried
	// again by itself, and one may well be an accident.
	ErrorsToBackOff = 3
)

// Launches is what became of pools' latest launches.
type Launches struct {
	backoffs map[string]*launchBackoff // by pool
	recent   map[string]launchResults  // by pool
	refused  map[string]launchRefusal  // launches that were, by claim UID
}

// NewLaunches knows of none yet.
func NewLaunches() Launches {
	return Launches{backoffs: make(map[string]*launchBackoff), recent: make(map[string]launchResults),
		refused: make(map[string]launchRefusal)}
}

// launchBackoff is what is remembered of a pool whose launches fail.
type launchBackoff struct {
	errors  int // launches in a row that ended in an error
	count   int // holds in a row
	until   time.Time
	ended   bool // that until has passed has been noted
	message string
}

// Update holds a pool whose launches fail without a hint what to try instead, and lets go of it after one that went
// well. A refusal that names offerings is no reason to hold it: the next plan avoids them.
func (l *Launches) Update(pool string, o command.Outcome) (held, freed bool) {
	h := l.backoffs[pool]
	if o.Err == nil && !o.Refused {
		delete(l.backoffs, pool)
		return false, h != nil && h.count > 0
	}
	if len(o.Unavailable) > 0 || cloudprovider.IsQueued(o.Err) {
		return false, false // it only waits for its turn
	}
	if h == nil {
		h = &launchBackoff{}
		l.backoffs[pool] = h
	}
	h.message = cmp.Or(o.Refusal.Message, "the cloud can't sell what the pool asks for")
	if o.Err != nil {
		h.message = o.Err.Error()
		if h.errors++; h.errors < ErrorsToBackOff {
			return false, false
		}
	}
	if o.At.Before(h.until) {
		return false, false // those that were under way together fail together
	}
	h.count++
	h.until, h.ended = o.At.Add(min(FirstLaunchBackoff<<min(h.count-1, 20), longestLaunchBackoff)), false
	return true, false
}

// EndBackoffs tells how many pools may be tried again from now on.
func (l *Launches) EndBackoffs(now time.Time) (ended int) {
	for _, h := range l.backoffs {
		if h.count > 0 && !h.ended && !now.Before(h.until) {
			h.ended = true
			ended++
		}
	}
	return ended
}

// launchRefusal is when the cloud would not launch an instance, and what it said.
type launchRefusal struct {
	at   time.Time
	said command.Refusal
}

// RefusalCondition is what a claim's status will say, from the moment the cloud has refused to launch it until the
// watch shows it: its pods need another place now.
func (l *Launches) RefusalCondition(c *cluster.Claim) (cluster.Condition, bool) {
	no, refused := l.refused[c.UID]
	if !refused || c.Condition(cluster.Launched).Status != cluster.Unknown {
		return cluster.Condition{}, false
	}
	return cluster.Condition{
		Type: cluster.Launched, Status: cluster.False, Since: no.at,
		Reason: string(no.said.Reason), Message: no.said.Message,
	}, true
}

const (
	// resultsKept is how many of a pool's latest launches its health is judged by; failuresForBad how many of them must
	// have come to nothing for it to be bad.
	resultsKept    = 4
	failuresForBad = 2
)

// launchResults is what became of a pool's latest launches, the oldest first: true for those that have become nodes.
type launchResults []bool

// state is the health of a pool's launches; Unknown without any.
func (l launchResults) state() cluster.ConditionStatus {
	failed := 0
	for _, ok := range l {
		if !ok {
			failed++
		}
	}
	switch {
	case len(l) == 0:
		return cluster.Unknown
	case failed >= failuresForBad:
		return cluster.False
	}
	return cluster.True
}

// NoteResult notes what became of a pool's launch.
func (l *Launches) NoteResult(pool string, ok bool) {
	list := append(slices.Clone(l.recent[pool]), ok)
	l.recent[pool] = list[max(0, len(list)-resultsKept):]
}

// Restore takes over what the status of a pool that is new to us says about its launches.
func (l *Launches) Restore(p *cluster.Pool) {
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type != cluster.RegistrationHealthy || c.Generation != p.Generation:
		case c.Status == cluster.True:
			l.recent[p.Name] = launchResults{true}
		case c.Status == cluster.False:
			l.recent[p.Name] = launchResults{false, false}
		}
	}
}

// Forget forgets what is known of a pool's launches: it is gone, or has changed, which may be the cure.
func (l *Launches) Forget(pool string) {
	delete(l.recent, pool)
	delete(l.backoffs, pool)
}

// Refuse notes that the cloud would not launch a claim's instance.
func (l *Launches) Refuse(claim string, at time.Time, said command.Refusal) {
	l.refused[claim] = launchRefusal{at: at, said: said}
}

// ForgetRefusal forgets that it would not.
func (l *Launches) ForgetRefusal(claim string) { delete(l.refused, claim) }

// WasRefused reports whether the cloud has not launched an instance for the claim.
func (l *Launches) WasRefused(c *cluster.Claim) bool {
	_, refused := l.refused[c.UID]
	return refused || c.Condition(cluster.Launched).Status == cluster.False
}

// Show writes on a pool how its launches stand.
func (l *Launches) Show(p *cluster.Pool, now time.Time) {
	p.RegistrationHealth = l.recent[p.Name].state()
	h := l.backoffs[p.Name]
	if h == nil {
		return
	}
	p.InBackoff, p.Probing = now.Before(h.until), h.count > 0 && !now.Before(h.until)
	if p.InBackoff {
		p.BackoffUntil, p.BackoffCause = h.until, h.message
	}
}
