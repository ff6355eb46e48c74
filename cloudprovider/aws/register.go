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
	// flying are the launches whose answer is being waited for.
	flying map[string]bool
	// lost are launches whose answer was lost, by claim.
	lost map[types.UID]*sale
	// tries is how often a claim was refused an instance by EC2.
	tries map[types.UID]int
	// open are instances whose owner could not be told at the last look.
	open map[string]*ec2types.Instance
}

// holding is an instance and the claim that it was given to.
type holding struct {
	owner
	id string
	// answer is what Create has said of it; nil if it was found by its tags.
	answer *cloudprovider.Instance
	// since is when this process launched it; zero if it was found by its tags.
	since time.Time
	// ending is when it was asked to end.
	ending time.Time
	// named says that the instance carries its claim's name.
	named bool
}

func newRegister() *register {
	return &register{
		machines: map[string]*holding{}, claims: map[types.UID]*holding{}, flying: map[string]bool{},
		lost: map[types.UID]*sale{}, tries: map[types.UID]int{}, open: map[string]*ec2types.Instance{},
	}
}

// hold notes that the instance is the claim's. The lock is held.
func (r *register) hold(h *holding) {
	if before := r.machines[h.id]; before != nil {
		h.ending = before.ending
	}
	r.machines[h.id] = h
	if first := r.claims[h.uid]; first == nil {
		r.claims[h.uid] = h
	}
	delete(r.open, h.id)
	delete(r.lost, h.uid)
}

// of returns a copy of what is known of the claim's instance; nil if nothing is.
func (r *register) of(uid types.UID) *holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return copyOf(r.claims[uid])
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
func (r *register) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.machines[id]
	if h == nil {
		return
	}
	delete(r.machines, id)
	if r.claims[h.uid] == h {
		delete(r.claims, h.uid)
		r.tries[h.uid]++
	}
}

// takeOff notes that a launch is under way: instances of it that EC2 shows already are nobody's loss.
func (r *register) takeOff(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying[token] = true
}

// land notes how a launch ended: who got what, and who got nothing.
func (r *register) land(token string, given []*holding, refused []*buyer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range given {
		r.hold(h)
	}
	for _, b := range refused {
		r.tries[b.claim.UID]++
		delete(r.lost, b.claim.UID)
	}
	delete(r.flying, token)
}

// lose notes that the answer to a launch was lost.
func (r *register) lose(s *sale) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range s.buyers {
		if r.claims[b.claim.UID] == nil {
			r.lost[b.claim.UID] = s
		}
	}
	delete(r.flying, s.token)
}

// missing is the launch for the claim whose answer was lost; nil if there is none.
func (r *register) missing(uid types.UID) *sale {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost[uid]
}

// triesOf is how often the claim was refused.
func (r *register) triesOf(uid types.UID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries[uid]
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

// prune drops what is gone: instances that a complete list lacks and that are too old to be merely not shown yet.
func (r *register) prune(shown map[string]bool, before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, h := range r.machines {
		recent := h.since.After(before) || h.ending.After(before)
		if shown[id] || recent {
			continue
		}
		delete(r.machines, id)
		if r.claims[h.uid] == h {
			delete(r.claims, h.uid)
		}
		delete(r.tries, h.uid)
	}
}

// isFlying reports whether the answer to the instance's launch is being waited for.
func (r *register) isFlying(i *ec2types.Instance) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machines[*i.InstanceId] == nil && r.flying[tagOf(i, LaunchTagKey)]
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
