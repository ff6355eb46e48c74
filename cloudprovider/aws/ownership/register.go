package ownership

import (
	"slices"
	"strings"
	"sync"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// Register knows which instance is whose. Everything in it can be found out again from the instances' tags and the
// NodeClaims (resolve.go), so a restart loses nothing; while the process lives it also covers what EC2 does
// not show yet.
//
// Instances of one launch are interchangeable until one is given to a claim. That happens here, in memory, in the
// moment in which EC2 answers. The claim's name is written on the instance a little later (nametag.go), and the core
// writes the instance's id on the claim. If the process dies before either, nobody has relied on the choice and it is
// made again.
type Register struct {
	mu sync.Mutex
	assignments
	launches
	// tries is how often a claim was refused an instance by EC2, and when last.
	tries map[types.UID]failedLaunches
	// unowned are instances whose owner could not be told at the last look.
	unowned map[string]*ec2types.Instance
	// gone are instances that EC2 has called gone, and when: an older look may still show them.
	gone map[string]time.Time
}

// failedLaunches counts launches for a claim that gave it nothing.
type failedLaunches struct {
	times int
	last  time.Time
}

// keepTries is how long they are remembered: longer than any claim waits.
const keepTries = time.Hour

// Assignment is an instance and the claim that it was given to.
type Assignment struct {
	Claim
	ID string
	// CreateAnswer is what Create has said of it; nil if it was found by its tags.
	CreateAnswer *cloudprovider.Instance
	// LaunchedAt is when this process launched it; zero if it was found by its tags.
	LaunchedAt time.Time
	// EndingSince is when it was asked to end; lastSeen when EC2 was last seen to list it.
	EndingSince, lastSeen time.Time
	// Named says that the instance carries its claim's name.
	Named bool
}

// assignments are the known owners.
type assignments struct {
	// byInstance are they by instance id; byClaim is the instance of each claim. An instance beyond the first of its
	// claim is in byInstance only.
	byInstance map[string]*Assignment
	byClaim    map[types.UID]*Assignment
}

// NewRegister returns a register that knows of no instance.
func NewRegister() *Register {
	return &Register{
		assignments: assignments{byInstance: map[string]*Assignment{}, byClaim: map[types.UID]*Assignment{}},
		launches:    launches{launching: map[types.UID]*Launch{}, callsUnderWay: map[string]*Launch{}},
		tries:       map[types.UID]failedLaunches{}, unowned: map[string]*ec2types.Instance{},
		gone: map[string]time.Time{},
	}
}

// Assign notes that the instance is the claim's, unless it is another's: what was given away is never given to somebody
// else. The lock is held.
func (own *Register) Assign(a *Assignment) {
	if before := own.byInstance[a.ID]; before != nil {
		if before.UID != "" && before.UID != a.UID {
			return
		}
		a.EndingSince = before.EndingSince
	}
	own.byInstance[a.ID] = a
	if first := own.byClaim[a.UID]; first == nil || first.ID == a.ID {
		own.byClaim[a.UID] = a
	}
	delete(own.unowned, a.ID)
	if r := own.launching[a.UID]; r != nil && r.done == nil {
		delete(own.launching, a.UID) // what was lost is found
	}
}

// assignInOrder is the one way in which instances of a launch get owners: in the order of their ids, to those of its
// claims that have none, in the order of their marks. It returns the ids that are left. The lock is held.
func (own assignments) assignInOrder(ids []string, unserved []Claim,
	give func(id string, to Claim)) (left []string) {
	slices.Sort(ids)
	next := 0
	for _, id := range ids {
		if a := own.byInstance[id]; a != nil && (a.UID != "" || !a.EndingSince.IsZero()) {
			continue
		}
		for next < len(unserved) && own.byClaim[unserved[next].UID] != nil {
			next++
		}
		if next == len(unserved) {
			left = append(left, id)
			continue
		}
		give(id, unserved[next])
	}
	return left
}

// AssignmentOf returns a copy of what is known of the instance; nil if nothing is.
func (own *Register) AssignmentOf(id string) *Assignment {
	own.mu.Lock()
	defer own.mu.Unlock()
	return copyOf(own.byInstance[id])
}

func copyOf(a *Assignment) *Assignment {
	if a == nil {
		return nil
	}
	out := *a
	return &out
}

// noteNamed notes that the instance carries its claim's name.
func (own *Register) noteNamed(id string) {
	own.mu.Lock()
	defer own.mu.Unlock()
	if a := own.byInstance[id]; a != nil {
		a.Named = true
	}
}

// NoteEnding notes that the instance was asked to end.
func (own *Register) NoteEnding(id string, at time.Time) {
	own.mu.Lock()
	defer own.mu.Unlock()
	if a := own.byInstance[id]; a != nil {
		a.EndingSince = at
		return
	}
	own.byInstance[id] = &Assignment{ID: id, EndingSince: at, Named: true}
}

// Forget drops an instance that is gone for good. Should its claim want another, EC2 must not take the request for the
// first one.
func (own *Register) Forget(id string, now time.Time) {
	own.mu.Lock()
	defer own.mu.Unlock()
	own.gone[id] = now
	if a := own.byInstance[id]; a != nil {
		own.forgetLocked(a, now)
	}
}

// forgetLocked is forget with the lock held.
func (own *Register) forgetLocked(a *Assignment, now time.Time) {
	delete(own.byInstance, a.ID)
	own.takeFromClaim(a, now)
}

// takeFromClaim takes the instance from its claim, which may want another. The lock is held.
func (own *Register) takeFromClaim(a *Assignment, now time.Time) {
	if own.byClaim[a.UID] == a {
		delete(own.byClaim, a.UID)
		own.tries[a.UID] = failedLaunches{own.tries[a.UID].times + 1, now}
	}
}

// LeaveClaim takes an instance that is ending from its claim. Whose it was stays known until it is gone.
func (own *Register) LeaveClaim(id string, now time.Time) {
	own.mu.Lock()
	defer own.mu.Unlock()
	a := own.byInstance[id]
	if a == nil {
		return
	}
	if a.EndingSince.IsZero() {
		a.EndingSince = now
	}
	own.takeFromClaim(a, now)
}

// NotShownYet lists, by id, the instances that were launched lately and that a list which was begun at the time lacks:
// EC2 shows an instance some seconds after it has launched it.
func (own *Register) NotShownYet(shown map[string]bool, began time.Time) []*Assignment {
	own.mu.Lock()
	defer own.mu.Unlock()
	after := began.Add(-visibleWithin)
	var out []*Assignment
	for id, a := range own.byInstance {
		if !shown[id] && a.CreateAnswer != nil && a.LaunchedAt.After(after) && a.EndingSince.IsZero() {
			out = append(out, copyOf(a))
		}
	}
	slices.SortFunc(out, func(a, b *Assignment) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// prune drops what is gone: instances that a complete list of that time lacks and that are too old to be merely not
// shown yet.
func (own *Register) prune(shown map[string]bool, at time.Time) {
	own.mu.Lock()
	defer own.mu.Unlock()
	before := at.Add(-visibleWithin)
	for uid, t := range own.tries {
		if t.last.Before(before.Add(-keepTries)) {
			delete(own.tries, uid)
		}
	}
	for id, since := range own.gone {
		if since.Before(before) {
			delete(own.gone, id)
		}
	}
	for uid, r := range own.launching {
		if r.done == nil && r.lostAt.Before(before.Add(-keepTries)) {
			delete(own.launching, uid)
		}
	}
	for id, a := range own.byInstance {
		if shown[id] {
			a.lastSeen = at
			continue
		}
		if !a.LaunchedAt.After(before) && !a.EndingSince.After(before) && !a.lastSeen.After(before) {
			own.forgetLocked(a, at)
		}
	}
}

// IsLaunching reports whether the answer to the instance's launch is being waited for.
func (own *Register) IsLaunching(i *ec2types.Instance) bool {
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.byInstance[*i.InstanceId] == nil && own.callsUnderWay[TagOf(i, LaunchTagKey)] != nil
}

// Answer is what Create has said of the instance.
func (a *Assignment) Answer() *cloudprovider.Instance {
	out := a.CreateAnswer.DeepCopy()
	out.Terminating = !a.EndingSince.IsZero()
	return out
}

// CloudOwner is the claim in the core's words.
func (a *Assignment) CloudOwner() cloudprovider.Owner {
	return cloudprovider.Owner{ClaimName: a.Name, ClaimUID: string(a.UID)}
}
