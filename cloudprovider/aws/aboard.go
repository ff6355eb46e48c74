package aws

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// A launch whose answer was lost is asked for again at once, then after askFirst, then twice as long each time, askMost
	// at the longest.
	askFirst = time.Second
	askMost  = 30 * time.Second
)

// board takes those of the claims aboard of the launch that are waited for, have no instance and are aboard of no other; it
// returns the others. From now on, and until land, ground or lose, the launch is under way: instances of it that EC2 shows already are
// nobody's loss, and who comes for one of its claims waits.
func (r *register) board(s *sale, cluster string, wanting []*buyer) (elsewhere []*buyer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range wanting {
		if b.gone() || r.claims[b.claim.UID] != nil || r.aboard[b.claim.UID] != nil {
			elsewhere = append(elsewhere, b)
			continue
		}
		b.try = r.tries[b.claim.UID].times
		s.buyers = append(s.buyers, b)
	}
	if len(s.buyers) == 0 {
		return elsewhere
	}
	s.token, s.landed = launchToken(cluster, s.buyers), make(chan struct{})
	for _, b := range s.buyers {
		r.aboard[b.claim.UID] = s
	}
	r.flying[s.token] = s
	return elsewhere
}

// end ends the flight, and lets those go on who wait for it. The lock is held.
func (r *register) end(s *sale) {
	delete(r.flying, s.token)
	if s.landed != nil {
		close(s.landed)
		s.landed = nil
	}
}

// ground notes that EC2 has never heard of the launch: it is as if it had not been tried.
func (r *register) ground(s *sale) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disembark(s)
	r.end(s)
}

func (r *register) disembark(s *sale) {
	for _, b := range s.buyers {
		if r.aboard[b.claim.UID] == s {
			delete(r.aboard, b.claim.UID)
		}
	}
}

// land notes what EC2 has launched. Instances that have an owner already, because a look came first, stay with it; the
// others are dealt out. A claim that got nothing has been refused once more. describe says what a claim got.
func (r *register) land(s *sale, list []launched, describe func(*buyer, launched) *holding, now time.Time) (given []*holding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	byID, byUID := map[string]launched{}, map[types.UID]*buyer{}
	var ids []string
	var wanting []owner
	for _, l := range list {
		byID[l.id], ids = l, append(ids, l.id)
	}
	for _, b := range s.buyers {
		byUID[b.claim.UID] = b
		wanting = append(wanting, owner{claim: b.claim.Name, uid: b.claim.UID})
	}
	for _, l := range list {
		if h := r.machines[l.id]; h != nil && h.answer == nil && byUID[h.uid] != nil {
			full := describe(byUID[h.uid], l)
			h.claim, h.answer, h.since = full.claim, full.answer, full.since
		}
	}
	r.deal(ids, wanting, func(id string, to owner) {
		h := describe(byUID[to.uid], byID[id])
		r.hold(h)
		given = append(given, copyOf(h))
	})
	for _, b := range s.buyers {
		if r.claims[b.claim.UID] == nil {
			r.tries[b.claim.UID] = tried{r.tries[b.claim.UID].times + 1, now}
		}
	}
	r.disembark(s)
	r.end(s)
	return given
}

// lose notes that it is not known what became of a launch, of which EC2 has heard at that time for the last time. It stays
// aboard of the register for those of its claims that have nothing, until somebody finds out.
func (r *register) lose(s *sale, err error, at, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range s.buyers {
		if r.claims[b.claim.UID] != nil && r.aboard[b.claim.UID] == s {
			delete(r.aboard, b.claim.UID)
		}
	}
	s.failure, s.lostAt = err, at
	if s.askAt = now; s.asked > 0 {
		s.askAt = now.Add(min(askFirst<<min(s.asked-1, 10), askMost))
	}
	s.asked++
	r.end(s)
}

// launchOf is the launch that the claim is aboard of, nil if there is none. landed is closed when it ends; it is nil if its
// answer was lost.
func (r *register) launchOf(uid types.UID) (s *sale, landed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s = r.aboard[uid]; s == nil || s.landed == nil {
		return s, nil
	}
	return s, s.landed
}

// retake has the caller ask again for a launch whose answer was lost, if mine is true. Others wait for what comes of it, or
// get the failure of the last time if it is too early to ask again.
func (r *register) retake(s *sale, now time.Time) (landed <-chan struct{}, mine bool, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case s.landed != nil:
		return s.landed, false, nil
	case now.Before(s.askAt):
		return nil, false, s.failure
	}
	s.landed = make(chan struct{})
	r.flying[s.token] = s
	return s.landed, true, nil
}

// uncover lets the next look find owners for the instances of a launch although its claims still wait for it.
func (r *register) uncover(s *sale) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.flying, s.token)
}

// holder is what the claim holds; nil if it holds nothing.
func (r *register) holder(uid types.UID) *holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return copyOf(r.claims[uid])
}

// lostAt is when the launch was last asked for without an answer.
func (r *register) lostAt(s *sale) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.lostAt
}
