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

// register knows which instance is whose. Everything in it can be found out again from the instances' tags and the
// NodeClaims (settle.go), so a restart loses nothing; while the process lives it also covers what EC2 does not show yet.
//
// Instances of one launch are interchangeable until one is given to a claim. That happens here, in memory, in the moment
// in which EC2 answers. The claim's name is written on the instance a little later (name.go), and the core writes the
// instance's id on the claim. If the process dies before either, nobody has relied on the choice and it is made again.
type register struct {
	mu sync.Mutex
	// machines are the known owners by instance id; claims the instance of each claim. An instance beyond the first of its
	// claim is in machines only.
	machines map[string]*holding
	claims   map[types.UID]*holding
	// aboard are launches that are under way or whose answer was lost, by claim: no claim is in two. flying are those that
	// are under way, by token.
	aboard map[types.UID]*sale
	flying map[string]*sale
	// tries is how often a claim was refused an instance by EC2, and when last.
	tries map[types.UID]tried
	// open are instances whose owner could not be told at the last look.
	open map[string]*ec2types.Instance
	// gone are instances that EC2 has called gone, and when: an older look may still show them.
	gone map[string]time.Time
}

// tried counts launches for a claim that gave it nothing.
type tried struct {
	times int
	last  time.Time
}

// keepTries is how long they are remembered: longer than any claim waits.
const keepTries = time.Hour

// holding is an instance and the claim that it was given to.
type holding struct {
	owner
	id string
	// answer is what Create has said of it; nil if it was found by its tags.
	answer *cloudprovider.Instance
	// since is when this process launched it; zero if it was found by its tags.
	since time.Time
	// ending is when it was asked to end; seen when EC2 was last seen to list it.
	ending, seen time.Time
	// named says that the instance carries its claim's name.
	named bool
}

func newRegister() *register {
	return &register{
		machines: map[string]*holding{}, claims: map[types.UID]*holding{}, aboard: map[types.UID]*sale{}, flying: map[string]*sale{},
		tries: map[types.UID]tried{}, open: map[string]*ec2types.Instance{}, gone: map[string]time.Time{},
	}
}

// hold notes that the instance is the claim's, unless it is another's: what was given away is never given to somebody
// else. The lock is held.
func (r *register) hold(h *holding) {
	if before := r.machines[h.id]; before != nil {
		if before.uid != "" && before.uid != h.uid {
			return
		}
		h.ending = before.ending
	}
	r.machines[h.id] = h
	if first := r.claims[h.uid]; first == nil || first.id == h.id {
		r.claims[h.uid] = h
	}
	delete(r.open, h.id)
	if s := r.aboard[h.uid]; s != nil && s.landed == nil {
		delete(r.aboard, h.uid) // what was lost is found
	}
}

// deal is the one way in which instances of a launch get owners: in the order of their ids, to those of its claims that
// have none, in the order of their marks. It returns the ids that are left. The lock is held.
func (r *register) deal(ids []string, wanting []owner, give func(id string, to owner)) (left []string) {
	slices.Sort(ids)
	next := 0
	for _, id := range ids {
		if h := r.machines[id]; h != nil && (h.uid != "" || !h.ending.IsZero()) {
			continue
		}
		for next < len(wanting) && r.claims[wanting[next].uid] != nil {
			next++
		}
		if next == len(wanting) {
			left = append(left, id)
			continue
		}
		give(id, wanting[next])
	}
	return left
}

// machine returns a copy of what is known of the instance; nil if nothing is.
func (r *register) machine(id string) *holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return copyOf(r.machines[id])
}

func copyOf(h *holding) *holding {
	if h == nil {
		return nil
	}
	out := *h
	return &out
}

// named notes that the instance carries its claim's name.
func (r *register) named(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.machines[id]; h != nil {
		h.named = true
	}
}

// ends notes that the instance was asked to end.
func (r *register) ends(id string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.machines[id]; h != nil {
		h.ending = at
		return
	}
	r.machines[id] = &holding{id: id, ending: at, named: true}
}

// forget drops an instance that is gone for good. Should its claim want another, EC2 must not take the request for the
// first one.
func (r *register) forget(id string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone[id] = now
	if h := r.machines[id]; h != nil {
		r.drop(h, now)
	}
}

// drop is forget with the lock held.
func (r *register) drop(h *holding, now time.Time) {
	delete(r.machines, h.id)
	r.part(h, now)
}

// part takes the instance from its claim, which may want another. The lock is held.
func (r *register) part(h *holding, now time.Time) {
	if r.claims[h.uid] == h {
		delete(r.claims, h.uid)
		r.tries[h.uid] = tried{r.tries[h.uid].times + 1, now}
	}
}

// leave takes an instance that is ending from its claim. Whose it was stays known until it is gone.
func (r *register) leave(id string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.machines[id]
	if h == nil {
		return
	}
	if h.ending.IsZero() {
		h.ending = now
	}
	r.part(h, now)
}

// unseen lists, by id, the instances that were launched after the time and that the list lacks: EC2 shows an instance
// some seconds after it has launched it.
func (r *register) unseen(shown map[string]bool, after time.Time) []*holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*holding
	for id, h := range r.machines {
		if !shown[id] && h.answer != nil && h.since.After(after) && h.ending.IsZero() {
			out = append(out, copyOf(h))
		}
	}
	slices.SortFunc(out, func(a, b *holding) int { return strings.Compare(a.id, b.id) })
	return out
}

// prune drops what is gone: instances that a complete list of that time lacks and that are too old to be merely not shown
// yet.
func (r *register) prune(shown map[string]bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := at.Add(-showsIn)
	for uid, t := range r.tries {
		if t.last.Before(before.Add(-keepTries)) {
			delete(r.tries, uid)
		}
	}
	for id, since := range r.gone {
		if since.Before(before) {
			delete(r.gone, id)
		}
	}
	for uid, s := range r.aboard {
		if s.landed == nil && s.lostAt.Before(before.Add(-keepTries)) {
			delete(r.aboard, uid)
		}
	}
	for id, h := range r.machines {
		if shown[id] {
			h.seen = at
			continue
		}
		if !h.since.After(before) && !h.ending.After(before) && !h.seen.After(before) {
			r.drop(h, at)
		}
	}
}

// isFlying reports whether the answer to the instance's launch is being waited for.
func (r *register) isFlying(i *ec2types.Instance) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machines[*i.InstanceId] == nil && r.flying[tagOf(i, LaunchTagKey)] != nil
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
