package aws

import (
	"slices"
	"strings"
	"sync"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// ownership knows which instance is whose. Everything in it can be found out again from the instances' tags and the
// NodeClaims (ownership_resolve.go), so a restart loses nothing; while the process lives it also covers what EC2 does
// not show yet.
//
// Instances of one launch are interchangeable until one is given to a claim. That happens here, in memory, in the
// moment in which EC2 answers. The claim's name is written on the instance a little later (name.go), and the core
// writes the instance's id on the claim. If the process dies before either, nobody has relied on the choice and it is
// made again.
type ownership struct {
	mu sync.Mutex
	// byInstance are the known owners by instance id; byClaim the instance of each claim. An instance beyond the first
	// of its claim is in byInstance only.
	byInstance map[string]*assignment
	byClaim    map[types.UID]*assignment
	// launching are launches that are under way or whose answer was lost, by claim: no claim is in two. callsUnderWay
	// are those that are under way, by token.
	launching     map[types.UID]*fleetRequest
	callsUnderWay map[string]*fleetRequest
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

// assignment is an instance and the claim that it was given to.
type assignment struct {
	claimIdentity
	id string
	// createAnswer is what Create has said of it; nil if it was found by its tags.
	createAnswer *cloudprovider.Instance
	// launchedAt is when this process launched it; zero if it was found by its tags.
	launchedAt time.Time
	// endingSince is when it was asked to end; lastSeen when EC2 was last seen to list it.
	endingSince, lastSeen time.Time
	// named says that the instance carries its claim's name.
	named bool
}

func newOwnership() *ownership {
	return &ownership{
		byInstance: map[string]*assignment{}, byClaim: map[types.UID]*assignment{},
		launching: map[types.UID]*fleetRequest{}, callsUnderWay: map[string]*fleetRequest{},
		tries: map[types.UID]failedLaunches{}, unowned: map[string]*ec2types.Instance{}, gone: map[string]time.Time{},
	}
}

// assign notes that the instance is the claim's, unless it is another's: what was given away is never given to somebody
// else. The lock is held.
func (own *ownership) assign(a *assignment) {
	if before := own.byInstance[a.id]; before != nil {
		if before.uid != "" && before.uid != a.uid {
			return
		}
		a.endingSince = before.endingSince
	}
	own.byInstance[a.id] = a
	if first := own.byClaim[a.uid]; first == nil || first.id == a.id {
		own.byClaim[a.uid] = a
	}
	delete(own.unowned, a.id)
	if r := own.launching[a.uid]; r != nil && r.done == nil {
		delete(own.launching, a.uid) // what was lost is found
	}
}

// assignInOrder is the one way in which instances of a launch get owners: in the order of their ids, to those of its
// claims that have none, in the order of their marks. It returns the ids that are left. The lock is held.
func (own *ownership) assignInOrder(ids []string, unserved []claimIdentity,
	give func(id string, to claimIdentity)) (left []string) {
	slices.Sort(ids)
	next := 0
	for _, id := range ids {
		if a := own.byInstance[id]; a != nil && (a.uid != "" || !a.endingSince.IsZero()) {
			continue
		}
		for next < len(unserved) && own.byClaim[unserved[next].uid] != nil {
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

// assignmentOf returns a copy of what is known of the instance; nil if nothing is.
func (own *ownership) assignmentOf(id string) *assignment {
	own.mu.Lock()
	defer own.mu.Unlock()
	return copyOf(own.byInstance[id])
}

func copyOf(a *assignment) *assignment {
	if a == nil {
		return nil
	}
	out := *a
	return &out
}

// noteNamed notes that the instance carries its claim's name.
func (own *ownership) noteNamed(id string) {
	own.mu.Lock()
	defer own.mu.Unlock()
	if a := own.byInstance[id]; a != nil {
		a.named = true
	}
}

// noteEnding notes that the instance was asked to end.
func (own *ownership) noteEnding(id string, at time.Time) {
	own.mu.Lock()
	defer own.mu.Unlock()
	if a := own.byInstance[id]; a != nil {
		a.endingSince = at
		return
	}
	own.byInstance[id] = &assignment{id: id, endingSince: at, named: true}
}

// forget drops an instance that is gone for good. Should its claim want another, EC2 must not take the request for the
// first one.
func (own *ownership) forget(id string, now time.Time) {
	own.mu.Lock()
	defer own.mu.Unlock()
	own.gone[id] = now
	if a := own.byInstance[id]; a != nil {
		own.forgetLocked(a, now)
	}
}

// forgetLocked is forget with the lock held.
func (own *ownership) forgetLocked(a *assignment, now time.Time) {
	delete(own.byInstance, a.id)
	own.takeFromClaim(a, now)
}

// takeFromClaim takes the instance from its claim, which may want another. The lock is held.
func (own *ownership) takeFromClaim(a *assignment, now time.Time) {
	if own.byClaim[a.uid] == a {
		delete(own.byClaim, a.uid)
		own.tries[a.uid] = failedLaunches{own.tries[a.uid].times + 1, now}
	}
}

// leaveClaim takes an instance that is ending from its claim. Whose it was stays known until it is gone.
func (own *ownership) leaveClaim(id string, now time.Time) {
	own.mu.Lock()
	defer own.mu.Unlock()
	a := own.byInstance[id]
	if a == nil {
		return
	}
	if a.endingSince.IsZero() {
		a.endingSince = now
	}
	own.takeFromClaim(a, now)
}

// notShownYet lists, by id, the instances that were launched after the time and that the list lacks: EC2 shows an
// instance some seconds after it has launched it.
func (own *ownership) notShownYet(shown map[string]bool, after time.Time) []*assignment {
	own.mu.Lock()
	defer own.mu.Unlock()
	var out []*assignment
	for id, a := range own.byInstance {
		if !shown[id] && a.createAnswer != nil && a.launchedAt.After(after) && a.endingSince.IsZero() {
			out = append(out, copyOf(a))
		}
	}
	slices.SortFunc(out, func(a, b *assignment) int { return strings.Compare(a.id, b.id) })
	return out
}

// prune drops what is gone: instances that a complete list of that time lacks and that are too old to be merely not
// shown yet.
func (own *ownership) prune(shown map[string]bool, at time.Time) {
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
		if !a.launchedAt.After(before) && !a.endingSince.After(before) && !a.lastSeen.After(before) {
			own.forgetLocked(a, at)
		}
	}
}

// isLaunching reports whether the answer to the instance's launch is being waited for.
func (own *ownership) isLaunching(i *ec2types.Instance) bool {
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.byInstance[*i.InstanceId] == nil && own.callsUnderWay[tagOf(i, LaunchTagKey)] != nil
}

func tagOf(i *ec2types.Instance, key string) string {
	for _, t := range i.Tags {
		if t.Key != nil && *t.Key == key && t.Value != nil {
			return *t.Value
		}
	}
	return ""
}

func tagsOf(i *ec2types.Instance) map[string]string {
	out := make(map[string]string, len(i.Tags))
	for _, t := range i.Tags {
		if t.Key != nil && t.Value != nil {
			out[*t.Key] = *t.Value
		}
	}
	return out
}

// isAlive tells whether the instance runs or is about to.
func isAlive(i *ec2types.Instance) bool {
	if i.State == nil {
		return false
	}
	switch i.State.Name {
	case ec2types.InstanceStateNamePending, ec2types.InstanceStateNameRunning:
		return true
	}
	return false
}

// claimName is the name of the claim that the instance carries; empty if it carries none yet.
func claimName(i *ec2types.Instance) string { return tagOf(i, awsv1.NodeClaimTagKey) }
