package aws

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// noon is when the tests of the register take place.
var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// given notes that the instance was launched for the claim at that time.
func (r *register) given(id, uid string, at time.Time) *holding {
	h := &holding{owner: owner{claim: "claim-" + uid, uid: types.UID(uid)}, id: id, since: at,
		answer: &cloudprovider.Instance{ProviderID: providerID("zone", id)}}
	r.hold(h)
	return h
}

// of is the instance that the claim has; empty if it has none.
func (r *register) of(uid string) string {
	if h := r.holder(types.UID(uid)); h != nil {
		return h.id
	}
	return ""
}

// An instance is its claim's for good, and a claim keeps the first of its instances. That one is to end is remembered,
// whoever learns of its owner later; and a launch whose answer was lost is over for a claim whose instance is found.
func TestWhatIsHeldStaysHeld(t *testing.T) {
	r := newRegister()
	r.given("i-1", "a", noon)
	r.given("i-1", "b", noon)
	if h := r.machine("i-1"); h.uid != "a" || r.of("a") != "i-1" || r.of("b") != "" {
		t.Errorf("given away twice: %+v", h)
	}
	r.given("i-2", "a", noon)
	if h := r.machine("i-2"); h == nil || h.uid != "a" || r.of("a") != "i-1" {
		t.Errorf("the claim has %q after a second instance of it, %+v, was found", r.of("a"), h)
	}
	r.given("i-1", "a", noon.Add(time.Second))
	if h := r.holder("a"); h.since != noon.Add(time.Second) {
		t.Errorf("what is found out anew is not noted: %+v", h)
	}
	r.ends("i-3", noon)
	r.open["i-3"] = &ec2types.Instance{}
	r.given("i-3", "c", noon)
	if h := r.holder("c"); h == nil || h.ending != noon || len(r.open) != 0 {
		t.Errorf("of one that is ending: %+v, and %d are open", h, len(r.open))
	}
	lost, going := &sale{}, &sale{landed: make(chan struct{})}
	r.aboard["d"], r.aboard["e"] = lost, going
	r.given("i-4", "d", noon)
	r.given("i-5", "e", noon)
	if r.aboard["d"] != nil || r.aboard["e"] != going {
		t.Errorf("aboard are %v", r.aboard)
	}
}

// Instances of a launch are dealt out in the order of their ids, to those of its claims that have none. What has an
// owner or is ending is not.
func TestInstancesAreDealtOut(t *testing.T) {
	r := newRegister()
	r.given("i-0", "a", noon)
	r.given("i-4", "x", noon)
	r.ends("i-5", noon)
	r.machines["i-6"] = &holding{id: "i-6"} // known, and nobody's
	var got []string
	wanting := []owner{{uid: "a"}, {uid: "b"}, {uid: "c"}, {uid: "d"}}
	left := r.deal([]string{"i-7", "i-3", "i-4", "i-5", "i-6", "i-8"}, wanting, func(id string, to owner) {
		got = append(got, id+" "+string(to.uid))
		r.given(id, string(to.uid), noon)
	})
	if text := strings.Join(got, ", "); text != "i-3 b, i-6 c, i-7 d" || !slices.Equal(left, []string{"i-8"}) {
		t.Errorf("%s are given and %v left", text, left)
	}
}

// An instance that ends is no longer its claim's, but whose it was stays known until it is gone. Each that the claim
// has lost counts once: EC2 must not take the next request for the last one.
func TestInstancesThatLeave(t *testing.T) {
	r := newRegister()
	r.given("i-1", "a", noon)
	r.leave("i-1", noon.Add(time.Minute))
	r.leave("i-1", noon.Add(2*time.Minute))
	r.leave("i-0", noon)
	if h := r.machine("i-1"); h == nil || h.uid != "a" || h.ending != noon.Add(time.Minute) || r.of("a") != "" {
		t.Errorf("it is %+v, and the claim has %q", h, r.of("a"))
	}
	if n := r.tries["a"]; n != (tried{1, noon.Add(time.Minute)}) {
		t.Errorf("the claim has lost %+v", n)
	}
	r.given("i-2", "a", noon)
	r.forget("i-1", noon.Add(3*time.Minute))
	if r.machine("i-1") != nil || r.of("a") != "i-2" || r.tries["a"].times != 1 {
		t.Errorf("when the first is gone the claim has %q and has lost %+v", r.of("a"), r.tries["a"])
	}
	r.forget("i-2", noon.Add(4*time.Minute))
	r.forget("i-9", noon)
	if r.machine("i-2") != nil || r.of("a") != "" || r.tries["a"] != (tried{2, noon.Add(4 * time.Minute)}) {
		t.Errorf("when both are gone the claim has %q and has lost %+v", r.of("a"), r.tries["a"])
	}
	if want := map[string]time.Time{"i-1": noon.Add(3 * time.Minute), "i-2": noon.Add(4 * time.Minute),
		"i-9": noon}; fmt.Sprint(r.gone) != fmt.Sprint(want) {
		t.Errorf("gone are %v", r.gone)
	}
}

// What was asked to end, and what carries its claim's name, is noted, also of instances that nobody knows.
func TestWhatIsNotedOfInstances(t *testing.T) {
	r := newRegister()
	r.given("i-1", "a", noon)
	r.named("i-1")
	r.named("i-9")
	r.ends("i-1", noon)
	r.ends("i-2", noon)
	if h := r.machine("i-1"); !h.named || h.ending != noon || h.uid != "a" {
		t.Errorf("its own: %+v", h)
	}
	if h := r.machine("i-2"); h == nil || *h != (holding{id: "i-2", ending: noon, named: true}) {
		t.Errorf("an unknown one: %+v", h)
	}
	r.machine("i-1").claim = "changed"
	if r.machine("i-1").claim != "claim-a" || r.machine("i-9") != nil {
		t.Error("what the register says can be changed from outside, or is made up")
	}
}

// EC2 shows an instance some seconds after its launch: until then, those that were launched lately are listed from
// memory.
func TestInstancesThatAreNotShownYet(t *testing.T) {
	r := newRegister()
	for id, at := range map[string]time.Duration{"i-4": 3, "i-2": 2, "i-1": 1, "i-0": 0, "i-3": 3, "i-6": 6, "i-7": 7,
		"i-8": 8, "i-9": 9} {
		r.given(id, "of-"+id, noon.Add(at))
	}
	r.hold(&holding{owner: owner{uid: "tags"}, id: "i-5", since: noon.Add(5)})
	r.ends("i-2", noon)
	var got []string
	for _, h := range r.unseen(map[string]bool{"i-4": true}, noon) {
		got = append(got, h.id)
		h.claim = "changed"
	}
	if want := []string{"i-1", "i-3", "i-6", "i-7", "i-8", "i-9"}; !slices.Equal(got,
		want) || r.machine("i-1").claim == "changed" {
		t.Errorf("%v, want %v, and copies", got, want)
	}
}

// A complete look drops what it lacks, unless that may merely not be shown yet: a minute after its launch, after its
// end was asked for or after it was last shown. What is remembered of claims and of what is gone ends, too.
func TestWhatALookDrops(t *testing.T) {
	minute := time.Minute
	for _, c := range []struct {
		name         string
		since        time.Duration // ago; of the launch, the end and the last look
		ending, seen time.Duration
		shown        bool
		want         bool
	}{
		{"long ago", 2 * minute, 2 * minute, 2 * minute, false, false},
		{"long ago, and shown", 2 * minute, 2 * minute, 2 * minute, true, true},
		{"launched a minute ago", minute, 2 * minute, 2 * minute, false, false},
		{"launched less than a minute ago", minute - 1, 2 * minute, 2 * minute, false, true},
		{"to end for a minute", 2 * minute, minute, 2 * minute, false, false},
		{"to end for less than a minute", 2 * minute, minute - 1, 2 * minute, false, true},
		{"seen a minute ago", 2 * minute, 2 * minute, minute, false, false},
		{"seen less than a minute ago", 2 * minute, 2 * minute, minute - 1, false, true},
	} {
		r := newRegister()
		h := r.given("i-1", "a", noon.Add(-c.since))
		h.ending, h.seen = noon.Add(-c.ending), noon.Add(-c.seen)
		r.prune(map[string]bool{"i-1": c.shown}, noon)
		if got := r.machine("i-1"); (got != nil) != c.want || (r.of("a") != "") != c.want || c.shown && got.seen != noon {
			t.Errorf("%s: %+v, and the claim has %q", c.name, got, r.of("a"))
		}
		if lost := r.tries["a"] == (tried{1, noon}); lost == c.want {
			t.Errorf("%s: the claim has lost %+v", c.name, r.tries["a"])
		}
	}

	r, hour := newRegister(), time.Hour+minute
	r.tries["old"], r.tries["new"] = tried{1, noon.Add(-hour - 1)}, tried{1, noon.Add(-hour)}
	r.gone["i-old"], r.gone["i-new"] = noon.Add(-minute-1), noon.Add(-minute)
	r.aboard["old"], r.aboard["new"] = &sale{lostAt: noon.Add(-hour - 1)}, &sale{lostAt: noon.Add(-hour)}
	r.aboard["going"] = &sale{lostAt: noon.Add(-hour - 1), landed: make(chan struct{})}
	r.prune(nil, noon)
	if len(r.tries) != 1 || r.tries["new"].times != 1 || len(r.gone) != 1 || r.gone["i-new"].IsZero() {
		t.Errorf("of claims %v and of what is gone %v is left", r.tries, r.gone)
	}
	if len(r.aboard) != 2 || r.aboard["new"] == nil || r.aboard["going"] == nil {
		t.Errorf("aboard are %v", r.aboard)
	}
}

// tagged is an instance that runs, with tags: key, value, key, value….
func tagged(id string, tags ...string) ec2types.Instance {
	i := ec2types.Instance{InstanceId: &id, State: &ec2types.InstanceState{Name: ec2types.InstanceStateNameRunning}}
	for k := 0; k < len(tags); k += 2 {
		i.Tags = append(i.Tags, ec2types.Tag{Key: &tags[k], Value: &tags[k+1]})
	}
	return i
}

// An instance of a launch that is under way is nobody's until the answer comes; one that is known is its owner's.
func TestInstancesOfALaunchUnderWay(t *testing.T) {
	r := newRegister()
	r.flying["token"] = &sale{}
	r.given("i-2", "a", noon)
	for id, want := range map[string]bool{"i-1": true, "i-2": false} {
		if i := tagged(id, LaunchTagKey, "token"); r.isFlying(&i) != want {
			t.Errorf("%s is under way: %t", id, !want)
		}
	}
	if i := tagged("i-3", LaunchTagKey, "another"); r.isFlying(&i) {
		t.Error("an instance of another launch is under way")
	}
}

// Tags may lack a key or a value, as the API allows; and only instances that run or start are alive.
func TestWhatIsReadOfAnInstance(t *testing.T) {
	i := tagged("i-1", "a", "1", "b", "2")
	i.Tags = append([]ec2types.Tag{{}, {Key: new("c")}, {Value: new("3")}}, i.Tags...)
	if got := fmt.Sprint(tagOf(&i, "a"), tagOf(&i, "b"), tagOf(&i, "c"), tagOf(&i, "d"),
		tagsOf(&i)); got != "12map[a:1 b:2]" {
		t.Errorf("read %s", got)
	}
	for state, want := range map[ec2types.InstanceStateName]bool{"pending": true, "running": true, "stopping": false,
		"stopped":       false,
		"shutting-down": false, "terminated": false} {
		if isAlive(&ec2types.Instance{State: &ec2types.InstanceState{Name: state}}) != want {
			t.Errorf("%s is alive: %t", state, !want)
		}
	}
	if isAlive(&ec2types.Instance{}) {
		t.Error("what has no state is alive")
	}
}

// A claim that comes for its instance knows its own name and UID: that may be what was missing to tell whose it is.
func TestClaimsRecallTheirInstances(t *testing.T) {
	const uid, other = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
	c := &v1.NodeClaim{}
	c.Name, c.UID = "mine", uid
	for _, x := range []struct {
		name string
		tags []string
		want bool
	}{
		{"name and mark", []string{awsv1.NodeClaimTagKey, "mine", ClaimsTagKey, mark(other) + mark(uid)}, true},
		{"another name", []string{awsv1.NodeClaimTagKey, "other", ClaimsTagKey, mark(uid)}, false},
		{"another's mark, as of a namesake", []string{awsv1.NodeClaimTagKey, "mine", ClaimsTagKey, mark(other)}, false},
		{"no name", []string{ClaimsTagKey, mark(uid)}, false},
	} {
		r := newRegister()
		i := tagged("i-1", x.tags...)
		r.open["i-1"] = &i
		h := r.recall(c)
		if x.want != (h != nil) || x.want && *h != (holding{owner: owner{"mine", uid}, id: "i-1", named: true}) {
			t.Errorf("%s: %+v", x.name, h)
		}
		if (r.of(uid) == "i-1") != x.want || (len(r.open) == 0) != x.want {
			t.Errorf("%s: the claim has %q, and %d are open", x.name, r.of(uid), len(r.open))
		}
	}
	r := newRegister()
	r.hold(&holding{owner: owner{uid: uid}, id: "i-1"})
	if h := r.recall(c); h == nil || h.claim != "mine" || r.machine("i-1").claim != "mine" {
		t.Errorf("its name is not noted: %+v", h)
	}
	c.Name = "renamed"
	if h := r.recall(c); h.claim != "mine" {
		t.Errorf("its name is noted anew: %+v", h)
	}
}

// Calls about a zone that AWS has moved traffic away from are kept apart from the others.
func TestShiftedZones(t *testing.T) {
	at := func(zone, id string) *ec2types.Instance {
		i := tagged("i-1")
		i.Placement = &ec2types.Placement{AvailabilityZone: &zone, AvailabilityZoneId: &id}
		return &i
	}
	nowhere := tagged("i-1")
	shifted := func(id string) bool { return id == "az1" || id == "" }
	for _, c := range []struct {
		name    string
		shifted func(string) bool
		i       *ec2types.Instance
		want    string
	}{
		{"the zone is shifted", shifted, at("a", "az1"), "a"}, {"another zone is", shifted, at("b", "az2"),
			""}, {"nobody says which are", nil, at("a", "az1"), ""},
		{"it is not known where it is", shifted, &nowhere, ""}, {"it is not shown yet", shifted, nil, ""},
	} {
		if got := (&Provider{catalog: &catalog{shifted: c.shifted}}).shiftedZone(c.i); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
