package ownership

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
func (own *Register) given(id, uid string, at time.Time) *Assignment {
	a := &Assignment{Claim: Claim{Name: "claim-" + uid, UID: types.UID(uid)}, ID: id, LaunchedAt: at,
		CreateAnswer: &cloudprovider.Instance{ProviderID: ProviderID("zone", id)}}
	own.Assign(a)
	return a
}

// of is the instance that the claim has; empty if it has none.
func (own *Register) of(uid string) string {
	if a := own.InstanceOf(types.UID(uid)); a != nil {
		return a.ID
	}
	return ""
}

// An instance is its claim's for good, and a claim keeps the first of its instances. That one is to end is remembered,
// whoever learns of its owner later; and a launch whose answer was lost is over for a claim whose instance is found.
func TestWhatIsHeldStaysHeld(t *testing.T) {
	o := NewRegister()
	o.given("i-1", "a", noon)
	o.given("i-1", "b", noon)
	if a := o.AssignmentOf("i-1"); a.UID != "a" || o.of("a") != "i-1" || o.of("b") != "" {
		t.Errorf("given away twice: %+v", a)
	}
	o.given("i-2", "a", noon)
	if a := o.AssignmentOf("i-2"); a == nil || a.UID != "a" || o.of("a") != "i-1" {
		t.Errorf("the claim has %q after a second instance of it, %+v, was found", o.of("a"), a)
	}
	o.given("i-1", "a", noon.Add(time.Second))
	if a := o.InstanceOf("a"); a.LaunchedAt != noon.Add(time.Second) {
		t.Errorf("what is found out anew is not noted: %+v", a)
	}
	o.NoteEnding("i-3", noon)
	o.unowned["i-3"] = &ec2types.Instance{}
	o.given("i-3", "c", noon)
	if a := o.InstanceOf("c"); a == nil || a.EndingSince != noon || len(o.unowned) != 0 {
		t.Errorf("of one that is ending: %+v, and %d are open", a, len(o.unowned))
	}
	lost, going := &Launch{}, &Launch{done: make(chan struct{})}
	o.launching["d"], o.launching["e"] = lost, going
	o.given("i-4", "d", noon)
	o.given("i-5", "e", noon)
	if o.launching["d"] != nil || o.launching["e"] != going {
		t.Errorf("being launched are %v", o.launching)
	}
}

// Instances of a launch are given out in the order of their ids, to those of its claims that have none. What has an
// owner or is ending is not.
func TestInstancesAreDealtOut(t *testing.T) {
	o := NewRegister()
	o.given("i-0", "a", noon)
	o.given("i-4", "x", noon)
	o.NoteEnding("i-5", noon)
	o.byInstance["i-6"] = &Assignment{ID: "i-6"} // known, and nobody's
	var got []string
	unserved := []Claim{{UID: "a"}, {UID: "b"}, {UID: "c"}, {UID: "d"}}
	left := o.assignInOrder([]string{"i-7", "i-3", "i-4", "i-5", "i-6", "i-8"}, unserved,
		func(id string, to Claim) {
			got = append(got, id+" "+string(to.UID))
			o.given(id, string(to.UID), noon)
		})
	if text := strings.Join(got, ", "); text != "i-3 b, i-6 c, i-7 d" || !slices.Equal(left, []string{"i-8"}) {
		t.Errorf("%s are given and %v left", text, left)
	}
}

// An instance that ends is no longer its claim's, but whose it was stays known until it is gone. Each that the claim
// has lost counts once: EC2 must not take the next request for the last one.
func TestInstancesThatLeave(t *testing.T) {
	o := NewRegister()
	o.given("i-1", "a", noon)
	o.LeaveClaim("i-1", noon.Add(time.Minute))
	o.LeaveClaim("i-1", noon.Add(2*time.Minute))
	o.LeaveClaim("i-0", noon)
	if a := o.AssignmentOf("i-1"); a == nil || a.UID != "a" || a.EndingSince != noon.Add(time.Minute) ||
		o.of("a") != "" {
		t.Errorf("it is %+v, and the claim has %q", a, o.of("a"))
	}
	if n := o.tries["a"]; n != (failedLaunches{1, noon.Add(time.Minute)}) {
		t.Errorf("the claim has lost %+v", n)
	}
	o.given("i-2", "a", noon)
	o.Forget("i-1", noon.Add(3*time.Minute))
	if o.AssignmentOf("i-1") != nil || o.of("a") != "i-2" || o.tries["a"].times != 1 {
		t.Errorf("when the first is gone the claim has %q and has lost %+v", o.of("a"), o.tries["a"])
	}
	o.Forget("i-2", noon.Add(4*time.Minute))
	o.Forget("i-9", noon)
	if o.AssignmentOf("i-2") != nil || o.of("a") != "" ||
		o.tries["a"] != (failedLaunches{2, noon.Add(4 * time.Minute)}) {
		t.Errorf("when both are gone the claim has %q and has lost %+v", o.of("a"), o.tries["a"])
	}
	if want := map[string]time.Time{"i-1": noon.Add(3 * time.Minute), "i-2": noon.Add(4 * time.Minute),
		"i-9": noon}; fmt.Sprint(o.gone) != fmt.Sprint(want) {
		t.Errorf("gone are %v", o.gone)
	}
}

// What was asked to end, and what carries its claim's name, is noted, also of instances that nobody knows.
func TestWhatIsNotedOfInstances(t *testing.T) {
	o := NewRegister()
	o.given("i-1", "a", noon)
	o.noteNamed("i-1")
	o.noteNamed("i-9")
	o.NoteEnding("i-1", noon)
	o.NoteEnding("i-2", noon)
	if a := o.AssignmentOf("i-1"); !a.Named || a.EndingSince != noon || a.UID != "a" {
		t.Errorf("its own: %+v", a)
	}
	if a := o.AssignmentOf("i-2"); a == nil || *a != (Assignment{ID: "i-2", EndingSince: noon, Named: true}) {
		t.Errorf("an unknown one: %+v", a)
	}
	o.AssignmentOf("i-1").Name = "changed"
	if o.AssignmentOf("i-1").Name != "claim-a" || o.AssignmentOf("i-9") != nil {
		t.Error("what the register says can be changed from outside, or is made up")
	}
}

// EC2 shows an instance some seconds after its launch: until then, those that were launched lately are listed from
// memory.
func TestInstancesThatAreNotShownYet(t *testing.T) {
	o := NewRegister()
	for id, at := range map[string]time.Duration{"i-4": 3, "i-2": 2, "i-1": 1, "i-0": 0, "i-3": 3, "i-6": 6, "i-7": 7,
		"i-8": 8, "i-9": 9} {
		o.given(id, "of-"+id, noon.Add(at))
	}
	o.Assign(&Assignment{Claim: Claim{UID: "tags"}, ID: "i-5", LaunchedAt: noon.Add(5)})
	o.NoteEnding("i-2", noon)
	var got []string
	for _, a := range o.NotShownYet(map[string]bool{"i-4": true}, noon.Add(visibleWithin)) {
		got = append(got, a.ID)
		a.Name = "changed"
	}
	if want := []string{"i-1", "i-3", "i-6", "i-7", "i-8", "i-9"}; !slices.Equal(got,
		want) || o.AssignmentOf("i-1").Name == "changed" {
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
		o := NewRegister()
		a := o.given("i-1", "a", noon.Add(-c.since))
		a.EndingSince, a.lastSeen = noon.Add(-c.ending), noon.Add(-c.seen)
		o.prune(map[string]bool{"i-1": c.shown}, noon)
		if got := o.AssignmentOf("i-1"); (got != nil) != c.want || (o.of("a") != "") != c.want || c.shown &&
			got.lastSeen != noon {
			t.Errorf("%s: %+v, and the claim has %q", c.name, got, o.of("a"))
		}
		if lost := o.tries["a"] == (failedLaunches{1, noon}); lost == c.want {
			t.Errorf("%s: the claim has lost %+v", c.name, o.tries["a"])
		}
	}

	own, hour := NewRegister(), time.Hour+minute
	own.tries["old"], own.tries["new"] = failedLaunches{1, noon.Add(-hour - 1)}, failedLaunches{1, noon.Add(-hour)}
	own.gone["i-old"], own.gone["i-new"] = noon.Add(-minute-1), noon.Add(-minute)
	own.launching["old"], own.launching["new"] = &Launch{lostAt: noon.Add(-hour - 1)},
		&Launch{lostAt: noon.Add(-hour)}
	own.launching["going"] = &Launch{lostAt: noon.Add(-hour - 1), done: make(chan struct{})}
	own.prune(nil, noon)
	if len(own.tries) != 1 || own.tries["new"].times != 1 || len(own.gone) != 1 || own.gone["i-new"].IsZero() {
		t.Errorf("of claims %v and of what is gone %v is left", own.tries, own.gone)
	}
	if len(own.launching) != 2 || own.launching["new"] == nil || own.launching["going"] == nil {
		t.Errorf("being launched are %v", own.launching)
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
	o := NewRegister()
	o.callsUnderWay["token"] = &Launch{}
	o.given("i-2", "a", noon)
	for id, want := range map[string]bool{"i-1": true, "i-2": false} {
		if i := tagged(id, LaunchTagKey, "token"); o.IsLaunching(&i) != want {
			t.Errorf("%s is under way: %t", id, !want)
		}
	}
	if i := tagged("i-3", LaunchTagKey, "another"); o.IsLaunching(&i) {
		t.Error("an instance of another launch is under way")
	}
}

// Tags may lack a key or a value, as the API allows; and only instances that run or start are alive.
func TestWhatIsReadOfAnInstance(t *testing.T) {
	i := tagged("i-1", "a", "1", "b", "2")
	i.Tags = append([]ec2types.Tag{{}, {Key: new("c")}, {Value: new("3")}}, i.Tags...)
	if got := fmt.Sprint(TagOf(&i, "a"), TagOf(&i, "b"), TagOf(&i, "c"), TagOf(&i, "d"),
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
		{"name and mark", []string{awsv1.NodeClaimTagKey, "mine", ClaimsTagKey, ShortUID(other) + ShortUID(uid)}, true},
		{"another name", []string{awsv1.NodeClaimTagKey, "other", ClaimsTagKey, ShortUID(uid)}, false},
		{"another's mark, as of a namesake", []string{awsv1.NodeClaimTagKey, "mine", ClaimsTagKey, ShortUID(other)},
			false},
		{"no name", []string{ClaimsTagKey, ShortUID(uid)}, false},
	} {
		o := NewRegister()
		i := tagged("i-1", x.tags...)
		o.unowned["i-1"] = &i
		a := o.RecallInstance(c)
		if x.want != (a != nil) || x.want && *a != (Assignment{Claim: Claim{"mine", uid}, ID: "i-1",
			Named: true}) {
			t.Errorf("%s: %+v", x.name, a)
		}
		if (o.of(uid) == "i-1") != x.want || (len(o.unowned) == 0) != x.want {
			t.Errorf("%s: the claim has %q, and %d are open", x.name, o.of(uid), len(o.unowned))
		}
	}
	own := NewRegister()
	own.Assign(&Assignment{Claim: Claim{UID: uid}, ID: "i-1"})
	if a := own.RecallInstance(c); a == nil || a.Name != "mine" || own.AssignmentOf("i-1").Name != "mine" {
		t.Errorf("its name is not noted: %+v", a)
	}
	c.Name = "renamed"
	if a := own.RecallInstance(c); a.Name != "mine" {
		t.Errorf("its name is noted anew: %+v", a)
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
		if got := (&Instances{o: Options{Shifted: c.shifted}}).ShiftedZone(c.i); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
