package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// endJudge watches the instances of the simulated cloud and the claims. An instance may end only after somebody has
// asked for its claim's end, or has taken the claim away; a claim has one instance at a time; an instance belongs to
// one claim. What was first is told by resource versions, which grow with every write to the control plane.
type endJudge struct {
	w  *world
	mu sync.Mutex
	// live are the instances that are there, by the name of their record.
	live map[string]machine
	// claims are all that were ever seen. Left out is one that came and went while nobody answered.
	claims map[types.UID]*claimEnds
	ends   []end
	// wrong is what must not be. most is the largest number of instances at a time, gaps how often a watch broke off.
	wrong      []string
	most, gaps int
}

// machine is what the record of an instance says of its owner.
type machine struct {
	ClaimName string    `json:"claimName"`
	ClaimUID  types.UID `json:"claimUID"`
}

// claimEnds is what has become of a claim.
type claimEnds struct {
	name, providerID string
	gone             bool
	// asked is the version at which its end was asked for, at the earliest; 0 if it was not.
	asked uint64
}

// end is the end of an instance, and the version by which that had happened.
type end struct {
	machine
	by uint64
}

func newEndJudge(w *world) *endJudge {
	w.Helper()
	c := &endJudge{w: w, live: map[string]machine{}, claims: map[types.UID]*claimEnds{}}
	api, err := client.NewWithWatch(w.lab.Config(), client.Options{Scheme: w.c.Scheme()})
	w.must(err)
	c.follow(api, &corev1.ConfigMapList{}, c.sawInstance, c.instancesNow, client.HasLabels{instanceLabel})
	c.follow(api, &v1.NodeClaimList{}, c.sawClaim, c.claimsNow)
	return c
}

// follow tells of all objects of a list, and then of each change; again and again, because the control plane may be
// restarted.
func (c *endJudge) follow(api client.WithWatch, list client.ObjectList, saw func(client.Object, bool, uint64),
	now func(client.ObjectList, uint64, uint64), options ...client.ListOption) {
	c.w.Helper()
	last := uint64(0)
	round := func() error {
		if err := api.List(c.w.ctx, list, options...); err != nil {
			return err
		}
		at, err := version(list.GetResourceVersion())
		if err != nil {
			return err
		}
		now(list, last, at)
		last = at
		from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
		changes, err := api.Watch(c.w.ctx, list, append(slices.Clone(options), from)...)
		if err != nil {
			return err
		}
		defer changes.Stop()
		for change := range changes.ResultChan() {
			object, ok := change.Object.(client.Object)
			if !ok || change.Type == watch.Error {
				return apierrors.FromObject(change.Object)
			}
			if last, err = version(object.GetResourceVersion()); err != nil {
				return err
			}
			saw(object, change.Type == watch.Deleted, last)
		}
		return nil
	}
	c.w.must(c.w.c.List(c.w.ctx, list, options...)) // somebody answers when the test begins
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c.w.ctx.Err() == nil {
			_ = round() // nobody may answer
			select {
			case <-c.w.ctx.Done():
			case <-time.After(glance):
			}
		}
	}()
	c.w.Cleanup(func() { <-done })
}

func version(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading resource version %q: %w", text, err)
	}
	return n, nil
}

// instancesNow takes note of all instances. Those that are missing have ended since the last look.
func (c *endJudge) instancesNow(list client.ObjectList, last, at uint64) {
	there := map[string]bool{}
	for i := range list.(*corev1.ConfigMapList).Items {
		o := &list.(*corev1.ConfigMapList).Items[i]
		there[client.ObjectKeyFromObject(o).String()] = true
	}
	c.mu.Lock()
	for name, m := range c.live {
		if !there[name] {
			c.ends = append(c.ends, end{m, at})
			delete(c.live, name)
		}
	}
	if last > 0 {
		c.gaps++
	}
	c.mu.Unlock()
	for i := range list.(*corev1.ConfigMapList).Items {
		c.sawInstance(&list.(*corev1.ConfigMapList).Items[i], false, at)
	}
}

func (c *endJudge) sawInstance(object client.Object, gone bool, at uint64) {
	var m machine
	err := json.Unmarshal([]byte(object.(*corev1.ConfigMap).Data["instance.json"]), &m)
	name := client.ObjectKeyFromObject(object).String()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || m.ClaimUID == "" {
		c.wrong = append(c.wrong, fmt.Sprintf("the record of instance %s cannot be read: %v", name, err))
		return
	}
	if gone {
		c.ends = append(c.ends, end{m, at})
		delete(c.live, name)
		return
	}
	for other, has := range c.live {
		if other != name && (has.ClaimUID == m.ClaimUID || has.ClaimName == m.ClaimName) {
			c.wrong = append(c.wrong, fmt.Sprintf("claim %s has two instances at a time: %s of UID %s and %s of UID %s",
				m.ClaimName, other, has.ClaimUID, name, m.ClaimUID))
		}
	}
	c.live[name] = m
	c.most = max(c.most, len(c.live))
}

// claimsNow takes note of all claims. What is new of them has happened after the last look.
func (c *endJudge) claimsNow(list client.ObjectList, last, at uint64) {
	there := map[types.UID]bool{}
	for i := range list.(*v1.NodeClaimList).Items {
		o := &list.(*v1.NodeClaimList).Items[i]
		there[o.UID] = true
		c.sawClaim(o, false, last+1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, f := range c.claims {
		if !there[uid] {
			f.end(last + 1)
			f.gone = true
		}
	}
	if last > 0 {
		c.gaps++
	}
}

func (f *claimEnds) end(at uint64) {
	if f.asked == 0 {
		f.asked = at
	}
}

func (c *endJudge) sawClaim(object client.Object, gone bool, at uint64) {
	claim := object.(*v1.NodeClaim)
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.claims[claim.UID]
	if f == nil {
		f = &claimEnds{name: claim.Name}
		c.claims[claim.UID] = f
	}
	if gone || claim.DeletionTimestamp != nil {
		f.end(at)
	}
	f.providerID, f.gone = claim.Status.ProviderID, gone
	for _, other := range c.claims {
		if other != f && !f.gone && !other.gone && f.providerID != "" && other.providerID == f.providerID {
			c.wrong = append(c.wrong, fmt.Sprintf("%s is the instance of claims %s and %s", f.providerID, f.name,
				other.name))
		}
	}
}

// caughtUp says which ends cannot be judged yet: the watch of claims may be late.
func (c *endJudge) caughtUp() string {
	c.mu.Lock()
	ends := slices.Clone(c.ends)
	c.mu.Unlock()
	for _, e := range ends {
		c.mu.Lock()
		f, gaps := c.claims[e.ClaimUID], c.gaps
		open := f == nil && gaps == 0 || f != nil && f.asked == 0
		c.mu.Unlock()
		if !open {
			continue
		}
		var claim v1.NodeClaim
		err := c.w.c.Get(c.w.ctx, client.ObjectKey{Name: e.ClaimName}, &claim)
		switch {
		case err == nil && claim.UID == e.ClaimUID && claim.DeletionTimestamp == nil:
			// nobody has ever asked for its end
		case client.IgnoreNotFound(err) != nil:
			return err.Error()
		default:
			return fmt.Sprintf("the watch has not shown the end of claim %s yet", e.ClaimName)
		}
	}
	return ""
}

// verdict lists the instances that were ended although nobody had asked for their claim's end, and all else that must
// not be.
func (c *endJudge) verdict() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.wrong)
	for _, e := range c.ends {
		switch f := c.claims[e.ClaimUID]; {
		case f == nil: // it came and went in a gap
		case f.asked == 0:
			out = append(out, fmt.Sprintf("the instance of claim %s (%s) was ended, the claim was not", e.ClaimName,
				e.ClaimUID))
		case f.asked > e.by:
			out = append(out, fmt.Sprintf("the instance of claim %s (%s) had ended by version %d, the claim's end "+
				"was asked"+
				" for at %d", e.ClaimName, e.ClaimUID, e.by, f.asked))
		}
	}
	return out
}

// judgeEnds fails the test if an instance was ended that was somebody's, or if one was doubled for a while.
func (c *chaos) judgeEnds() {
	c.Helper()
	c.settle(c.ends.caughtUp)
	for _, text := range c.ends.verdict() {
		c.Error(text)
	}
	c.ends.mu.Lock()
	defer c.ends.mu.Unlock()
	if len(c.ends.ends) == 0 {
		c.Error("the judge of ends has seen no instance end")
	}
	c.Logf("%d claims, %d instances have ended, at most %d were there at a time; the watches were interrupted %d times",
		len(c.ends.claims), len(c.ends.ends), c.ends.most, c.ends.gaps)
}

// history is what a judge of ends is told in a test.
type history struct{ *endJudge }

func (h history) claim(name, uid, machine string, at uint64) {
	h.sawClaim(madeUp(name, uid, machine), false, at)
}

func (h history) leaves(name, uid string, at uint64) {
	o := madeUp(name, uid, "")
	o.DeletionTimestamp = &metav1.Time{}
	h.sawClaim(o, false, at)
}

func (h history) goes(name, uid string, at uint64) { h.sawClaim(madeUp(name, uid, ""), true, at) }

func (h history) starts(record, name, uid string, at uint64) {
	h.instance(record, name, uid, false, at)
}

func (h history) ends(record, name, uid string, at uint64) { h.instance(record, name, uid, true, at) }

func (h history) instance(record, name, uid string, ended bool, at uint64) {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: record}}
	o.Data = map[string]string{"instance.json": fmt.Sprintf(`{"claimName":%q,"claimUID":%q}`, name, uid)}
	h.sawInstance(o, ended, at)
}

func madeUp(name, uid, machine string) *v1.NodeClaim {
	o := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	o.Status.ProviderID = machine
	return o
}

// TestEndJudge has the judge of ends judge made-up histories, in any order in which its two watches might tell them.
func TestEndJudge(t *testing.T) {
	for _, c := range []struct {
		name string
		want int
		play func(h history)
	}{
		{"asked, then ended", 0, func(h history) { h.leaves("a", "1", 5); h.ends("a-1", "a", "1", 6) }},
		{"told the other way round", 0, func(h history) { h.ends("a-1", "a", "1", 6); h.leaves("a", "1", 5) }},
		{"taken away at once", 0, func(h history) { h.goes("a", "1", 5); h.ends("a-1", "a", "1", 6) }},
		{"an orphan", 0, func(h history) { h.goes("a", "1", 4); h.ends("a-1", "a", "1", 60) }},
		{"ended, then asked", 1, func(h history) { h.ends("a-1", "a", "1", 5); h.leaves("a", "1", 6) }},
		{"ended, then gone", 1, func(h history) { h.ends("a-1", "a", "1", 5); h.goes("a", "1", 6) }},
		{"never asked", 1, func(h history) { h.ends("a-1", "a", "1", 6) }},
		{"lost in a gap", 1, func(h history) { h.instancesNow(&corev1.ConfigMapList{}, 4, 9) }},
		{"both in a gap", 0, func(h history) {
			h.instancesNow(&corev1.ConfigMapList{}, 4, 9)
			h.claimsNow(&v1.NodeClaimList{}, 4, 9)
		}},
		{"two of one claim", 1, func(h history) { h.starts("twin", "a", "1", 5) }},
		{"two of one name", 1, func(h history) { h.starts("a-2", "a", "2", 5) }},
		{"one after the other", 0, func(h history) {
			h.leaves("a", "1", 4)
			h.ends("a-1", "a", "1", 5)
			h.starts("a-2", "a", "2", 6)
		}},
		{"one of two claims", 1, func(h history) { h.claim("b", "2", "kwok://a-1", 5) }},
		{"two of two claims", 0, func(h history) { h.claim("b", "2", "kwok://b-2", 5); h.starts("b-2", "b", "2", 6) }},
		{"without an owner", 1, func(h history) { h.starts("x", "", "", 5) }},
	} {
		h := history{&endJudge{live: map[string]machine{}, claims: map[types.UID]*claimEnds{}}}
		h.claim("a", "1", "kwok://a-1", 1)
		h.starts("a-1", "a", "1", 2)
		if c.play(h); len(h.verdict()) != c.want {
			t.Errorf("%s: %q, want %d complaints", c.name, h.verdict(), c.want)
		}
	}
}
