package drift

import (
	"hash/fnv"
	"maps"
	"slices"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// AskDrift is how often the cloud is asked whether an instance is still what its NodeClass asks for; firstDrift is
	// within which time each is asked about for the first time, so that not all come at once.
	AskDrift   = 5 * time.Minute
	firstDrift = time.Minute
	// hastyDrift is the least time between two questions about the same instance; RetryDrift after an answer failed.
	hastyDrift = 5 * time.Second
	RetryDrift = 30 * time.Second
)

// States is what the cloud has said about each claim's instance, by claim UID.
type States struct {
	byClaim map[string]*State
	next    time.Time // nothing is due before
	// versions of the NodeClasses.
	versions map[cluster.ClassRef]string
}

// State is what is known of one.
type State struct {
	// Claim is the name of the claim.
	Claim  string
	class  cluster.ClassRef
	reason string
	// answered says that reason is the cloud's word in this life of the program; before, the claim's condition is
	// believed.
	answered  bool
	due, last time.Time
	asking    bool
	// askAgain says that the NodeClass has changed while the cloud was being asked.
	askAgain bool
}

// New knows of none yet.
func New() States {
	return States{byClaim: make(map[string]*State), versions: make(map[cluster.ClassRef]string)}
}

// Of is how the claim's instance differs from what its NodeClass asks for.
func (st *States) Of(c *cluster.Claim) string {
	d := st.byClaim[c.UID]
	if d != nil && d.answered {
		return d.reason
	}
	// Until the cloud has been asked, what was known before a restart holds, if it was the cloud's word.
	if drifted := c.Condition(cluster.Drifted); drifted.Status == cluster.True && !isOurDriftReason(drifted.Reason) {
		return drifted.Reason
	}
	return ""
}

// isOurDriftReason reports whether a reason for drift is one that we find out by ourselves.
func isOurDriftReason(reason string) bool {
	switch reason {
	case "NodePoolDrifted", "NodePoolStaticallyDrifted", "RequirementsDrifted", "InstanceTypeNotFound",
		cluster.Drifted, "":
		return true
	}
	return false
}

// Track sees to it that the cloud is asked about a claim's instance from its launch until its end.
func (st *States) Track(c *cluster.Claim, ref *v1.NodeClassReference, now time.Time) {
	if ref == nil || c.ProviderID == "" || !c.Deleting.IsZero() || !c.Is(cluster.Launched) {
		delete(st.byClaim, c.UID)
		return
	}
	class := cluster.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
	if d := st.byClaim[c.UID]; d != nil {
		d.class = class
		return
	}
	at := now.Add(spreadOver(c.UID, firstDrift))
	st.byClaim[c.UID] = &State{Claim: c.Name, class: class, due: at}
	if st.next.IsZero() || at.Before(st.next) {
		st.next = at
	}
}

// spreadOver is a part of the time that depends on the name and on nothing else.
func spreadOver(name string, over time.Duration) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	return time.Duration(h.Sum64() % uint64(over))
}

// AskSoon has the cloud asked about every instance of a NodeClass.
func (st *States) AskSoon(ref cluster.ClassRef, now time.Time) {
	for _, d := range st.byClaim {
		if d.class != ref {
			continue
		}
		d.askAgain = d.asking
		if soon := cluster.Later(now, d.last.Add(hastyDrift)); soon.Before(d.due) {
			d.due = soon
		}
	}
	st.next = now
}

// NoteVersion takes in the version of a NodeClass, and reports whether it has changed.
func (st *States) NoteVersion(ref cluster.ClassRef, version string) bool {
	before, known := st.versions[ref]
	st.versions[ref] = version
	return known && before != version
}

// Forget forgets a claim that is gone.
func (st *States) Forget(claim string) { delete(st.byClaim, claim) }

// ForgetClass forgets a NodeClass that is gone.
func (st *States) ForgetClass(ref cluster.ClassRef) { delete(st.versions, ref) }

// Due lists the claims about which the cloud is to be asked, and marks them as being asked about.
func (st *States) Due(now time.Time) []*State {
	if now.Before(st.next) {
		return nil
	}
	var out []*State
	st.next = now.Add(AskDrift)
	for _, uid := range slices.Sorted(maps.Keys(st.byClaim)) {
		d := st.byClaim[uid]
		if !d.asking && !now.Before(d.due) {
			d.asking, d.askAgain, d.last, d.due = true, false, now, now.Add(AskDrift)
			out = append(out, d)
		}
		if d.due.Before(st.next) {
			st.next = d.due
		}
	}
	return out
}

// Answered takes in what the cloud said about a claim that it was asked about, and reports whether that is something
// else than was known. After a failure the last answer stands. c is the claim as it is now; nil if it is gone.
func (st *States) Answered(d *State, c *cluster.Claim, reason string, err error, now time.Time) (news bool) {
	d.asking = false
	switch {
	case d.askAgain:
		d.due = cluster.Later(now, d.last.Add(hastyDrift))
	case err != nil:
		d.due = d.last.Add(RetryDrift)
	}
	if d.due.Before(st.next) {
		st.next = d.due
	}
	if err != nil || c == nil || st.byClaim[c.UID] != d {
		return false // or it has gone while the cloud was being asked
	}
	before := st.Of(c)
	d.answered, d.reason = true, reason
	return reason != before
}
