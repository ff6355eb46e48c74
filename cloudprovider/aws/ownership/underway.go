package ownership

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloudprovider"
)

const (
	// A launch whose answer was lost is asked for again at once, then after firstAskAgain, then twice as long each
	// time, longestAskAgain at the longest.
	firstAskAgain   = time.Second
	longestAskAgain = 30 * time.Second
)

// Launch is a launch of instances for some claims.
type Launch struct {
	// Token names it.
	Token string
	// Claims are those that it is for.
	Claims []Claim
	// Repeat asks EC2 for it again, should its answer get lost, and notes what comes of it.
	Repeat func(context.Context)

	// What follows is guarded by the register's lock.

	// done is closed when the call that is under way has ended; nil if none is.
	done chan struct{}
	// lostAt is when it was last asked for in vain, asks is how often, failure what came of it, and askAgainAt when to
	// ask again.
	lostAt, askAgainAt time.Time
	asks               int
	failure            error
}

// launches are those that are under way or whose answer was lost.
type launches struct {
	// launching are all of them, by claim: no claim is in two. callsUnderWay are those that are under way, by token.
	launching     map[types.UID]*Launch
	callsUnderWay map[string]*Launch
}

// NewLaunch is a launch for the claims, each of which was refused as often as is said. Its token is the same for the
// same claims, whatever their order, so that asking EC2 again is the same act. A claim's number of tries is part of it,
// because EC2 gives the same answer to the same token for ever.
func NewLaunch(cluster string, claims []Claim, refused func(types.UID) int) *Launch {
	lines := make([]string, 0, len(claims))
	for _, c := range claims {
		lines = append(lines, fmt.Sprintf("%s#%d", c.UID, refused(c.UID)))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(cluster + "\n" + strings.Join(lines, "\n")))
	return &Launch{Token: hex.EncodeToString(sum[:16]), Claims: claims}
}

// Has tells whether the launch is for the claim.
func (l *Launch) Has(uid types.UID) bool {
	return l != nil && slices.ContainsFunc(l.Claims, func(c Claim) bool { return c.UID == uid })
}

// BeginLaunch begins a launch for those of the claims that have no instance and are part of no other; it is nil if
// there are none. From now on, and until AssignLaunched, UndoLaunch or NoteLost, the launch is under way: instances of
// it that EC2 shows already are nobody's loss, and who comes for one of its claims waits.
func (own *Register) BeginLaunch(cluster string, unserved []Claim) *Launch {
	own.mu.Lock()
	defer own.mu.Unlock()
	unserved = slices.DeleteFunc(unserved, func(c Claim) bool {
		return own.byClaim[c.UID] != nil || own.launching[c.UID] != nil
	})
	if len(unserved) == 0 {
		return nil
	}
	l := NewLaunch(cluster, unserved, func(uid types.UID) int { return own.tries[uid].times })
	l.done = make(chan struct{})
	for _, c := range unserved {
		own.launching[c.UID] = l
	}
	own.callsUnderWay[l.Token] = l
	return l
}

// end ends the call, and lets those go on who wait for it.
func (own launches) end(l *Launch) {
	delete(own.callsUnderWay, l.Token)
	if l.done != nil {
		close(l.done)
		l.done = nil
	}
}

// remove takes the claims out of the launch.
func (own launches) remove(l *Launch) {
	for _, c := range l.Claims {
		if own.launching[c.UID] == l {
			delete(own.launching, c.UID)
		}
	}
}

// UndoLaunch notes that EC2 has never heard of the launch: it is as if it had not been tried.
func (own *Register) UndoLaunch(l *Launch) {
	own.mu.Lock()
	defer own.mu.Unlock()
	own.remove(l)
	own.end(l)
}

// AssignLaunched notes what EC2 has launched, by id. Instances that have an owner already, because a look came first,
// stay with it; the others are given out. A claim that got nothing has been refused once more. describe says what a
// claim got.
func (own *Register) AssignLaunched(l *Launch, ids []string, describe func(id string, to Claim) *cloudprovider.Instance,
	now time.Time) (given []*Assignment) {
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, id := range ids {
		a := own.byInstance[id]
		if a == nil || a.CreateAnswer != nil {
			continue
		}
		if at := slices.IndexFunc(l.Claims, func(c Claim) bool { return c.UID == a.UID }); at >= 0 {
			a.Claim, a.CreateAnswer, a.LaunchedAt = l.Claims[at], describe(id, l.Claims[at]), now
		}
	}
	own.assignInOrder(ids, l.Claims, func(id string, to Claim) {
		a := &Assignment{Claim: to, ID: id, LaunchedAt: now, Named: len(l.Claims) == 1, CreateAnswer: describe(id, to)}
		own.Assign(a)
		given = append(given, copyOf(a))
	})
	for _, c := range l.Claims {
		if own.byClaim[c.UID] == nil {
			own.tries[c.UID] = failedLaunches{own.tries[c.UID].times + 1, now}
		}
	}
	own.remove(l)
	own.end(l)
	return given
}

// NoteLost notes that it is not known what became of a launch, of which EC2 has heard at that time for the last time.
// It stays under way for those of its claims that have nothing, until somebody finds out.
func (own *Register) NoteLost(l *Launch, err error, at, now time.Time) {
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, c := range l.Claims {
		if own.byClaim[c.UID] != nil && own.launching[c.UID] == l {
			delete(own.launching, c.UID)
		}
	}
	l.failure, l.lostAt = err, at
	if l.askAgainAt = now; l.asks > 0 {
		l.askAgainAt = now.Add(min(firstAskAgain<<min(l.asks-1, 10), longestAskAgain))
	}
	l.asks++
	own.end(l)
}

// LaunchOf is the launch that the claim is part of, nil if there is none. landed is closed when it ends; it is nil if
// its answer was lost.
func (own *Register) LaunchOf(uid types.UID) (l *Launch, landed <-chan struct{}) {
	own.mu.Lock()
	defer own.mu.Unlock()
	if l = own.launching[uid]; l == nil || l.done == nil {
		return l, nil
	}
	return l, l.done
}

// MayAskAgain has the caller ask again for a launch whose answer was lost, if mine is true. Others wait for what comes
// of it, or get the failure of the last time if it is too early to ask again.
func (own *Register) MayAskAgain(l *Launch, now time.Time) (landed <-chan struct{}, mine bool, failure error) {
	own.mu.Lock()
	defer own.mu.Unlock()
	switch {
	case l.done != nil:
		return l.done, false, nil
	case now.Before(l.askAgainAt):
		return nil, false, l.failure
	}
	l.done = make(chan struct{})
	own.callsUnderWay[l.Token] = l
	return l.done, true, nil
}

// ReleaseLost lets the next look find owners for the instances of a launch although its claims still wait for it.
func (own *Register) ReleaseLost(l *Launch) {
	own.mu.Lock()
	defer own.mu.Unlock()
	delete(own.callsUnderWay, l.Token)
}

// InstanceOf is what the claim holds; nil if it holds nothing.
func (own *Register) InstanceOf(uid types.UID) *Assignment {
	own.mu.Lock()
	defer own.mu.Unlock()
	return copyOf(own.byClaim[uid])
}

// LostAt is when the launch was last asked for without an answer.
func (own *Register) LostAt(l *Launch) time.Time {
	own.mu.Lock()
	defer own.mu.Unlock()
	return l.lostAt
}
