package aws

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// A launch whose answer was lost is asked for again at once, then after firstAskAgain, then twice as long each
	// time, longestAskAgain at the longest.
	firstAskAgain   = time.Second
	longestAskAgain = 30 * time.Second
)

// addToLaunch adds those of the claims to the launch that are waited for, have no instance and are part of no other; it
// returns the others. From now on, and until assignLaunched, undoLaunch or lose, the launch is under way: instances of
// it that EC2 shows already are nobody's loss, and who comes for one of its claims waits.
func (own *ownership) addToLaunch(r *fleetRequest, cluster string,
	unserved []*launchRequest) (elsewhere []*launchRequest) {
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, q := range unserved {
		if q.isAbandoned() || own.byClaim[q.claim.UID] != nil || own.launching[q.claim.UID] != nil {
			elsewhere = append(elsewhere, q)
			continue
		}
		q.failures = own.tries[q.claim.UID].times
		r.requests = append(r.requests, q)
	}
	if len(r.requests) == 0 {
		return elsewhere
	}
	r.token, r.done = launchToken(cluster, r.requests), make(chan struct{})
	for _, q := range r.requests {
		own.launching[q.claim.UID] = r
	}
	own.callsUnderWay[r.token] = r
	return elsewhere
}

// endCall ends the call, and lets those go on who wait for it. The lock is held.
func (own *ownership) endCall(r *fleetRequest) {
	delete(own.callsUnderWay, r.token)
	if r.done != nil {
		close(r.done)
		r.done = nil
	}
}

// undoLaunch notes that EC2 has never heard of the launch: it is as if it had not been tried.
func (own *ownership) undoLaunch(r *fleetRequest) {
	own.mu.Lock()
	defer own.mu.Unlock()
	own.removeFromLaunch(r)
	own.endCall(r)
}

func (own *ownership) removeFromLaunch(r *fleetRequest) {
	for _, q := range r.requests {
		if own.launching[q.claim.UID] == r {
			delete(own.launching, q.claim.UID)
		}
	}
}

// assignLaunched notes what EC2 has launched. Instances that have an owner already, because a look came first, stay
// with it; the others are given out. A claim that got nothing has been refused once more. describe says what a claim
// got.
func (own *ownership) assignLaunched(r *fleetRequest, list []fleetInstance, describe func(*launchRequest,
	fleetInstance) *assignment, now time.Time) (given []*assignment) {
	own.mu.Lock()
	defer own.mu.Unlock()
	byID, byUID := map[string]fleetInstance{}, map[types.UID]*launchRequest{}
	var ids []string
	var unserved []claimIdentity
	for _, l := range list {
		byID[l.id], ids = l, append(ids, l.id)
	}
	for _, q := range r.requests {
		byUID[q.claim.UID] = q
		unserved = append(unserved, claimIdentity{claim: q.claim.Name, uid: q.claim.UID})
	}
	for _, l := range list {
		if a := own.byInstance[l.id]; a != nil && a.createAnswer == nil && byUID[a.uid] != nil {
			full := describe(byUID[a.uid], l)
			a.claim, a.createAnswer, a.launchedAt = full.claim, full.createAnswer, full.launchedAt
		}
	}
	own.assignInOrder(ids, unserved, func(id string, to claimIdentity) {
		a := describe(byUID[to.uid], byID[id])
		own.assign(a)
		given = append(given, copyOf(a))
	})
	for _, q := range r.requests {
		if own.byClaim[q.claim.UID] == nil {
			own.tries[q.claim.UID] = failedLaunches{own.tries[q.claim.UID].times + 1, now}
		}
	}
	own.removeFromLaunch(r)
	own.endCall(r)
	return given
}

// noteLost notes that it is not known what became of a launch, of which EC2 has heard at that time for the last time.
// It stays under way for those of its claims that have nothing, until somebody finds out.
func (own *ownership) noteLost(r *fleetRequest, err error, at, now time.Time) {
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, q := range r.requests {
		if own.byClaim[q.claim.UID] != nil && own.launching[q.claim.UID] == r {
			delete(own.launching, q.claim.UID)
		}
	}
	r.failure, r.lostAt = err, at
	if r.askAgainAt = now; r.asks > 0 {
		r.askAgainAt = now.Add(min(firstAskAgain<<min(r.asks-1, 10), longestAskAgain))
	}
	r.asks++
	own.endCall(r)
}

// launchOf is the launch that the claim is part of, nil if there is none. landed is closed when it ends; it is nil if
// its answer was lost.
func (own *ownership) launchOf(uid types.UID) (r *fleetRequest, landed <-chan struct{}) {
	own.mu.Lock()
	defer own.mu.Unlock()
	if r = own.launching[uid]; r == nil || r.done == nil {
		return r, nil
	}
	return r, r.done
}

// mayAskAgain has the caller ask again for a launch whose answer was lost, if mine is true. Others wait for what comes
// of it, or get the failure of the last time if it is too early to ask again.
func (own *ownership) mayAskAgain(r *fleetRequest, now time.Time) (landed <-chan struct{}, mine bool, failure error) {
	own.mu.Lock()
	defer own.mu.Unlock()
	switch {
	case r.done != nil:
		return r.done, false, nil
	case now.Before(r.askAgainAt):
		return nil, false, r.failure
	}
	r.done = make(chan struct{})
	own.callsUnderWay[r.token] = r
	return r.done, true, nil
}

// releaseLost lets the next look find owners for the instances of a launch although its claims still wait for it.
func (own *ownership) releaseLost(r *fleetRequest) {
	own.mu.Lock()
	defer own.mu.Unlock()
	delete(own.callsUnderWay, r.token)
}

// instanceOf is what the claim holds; nil if it holds nothing.
func (own *ownership) instanceOf(uid types.UID) *assignment {
	own.mu.Lock()
	defer own.mu.Unlock()
	return copyOf(own.byClaim[uid])
}

// lostAt is when the launch was last asked for without an answer.
func (own *ownership) lostAt(r *fleetRequest) time.Time {
	own.mu.Lock()
	defer own.mu.Unlock()
	return r.lostAt
}
