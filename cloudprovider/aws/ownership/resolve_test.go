package ownership

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// UIDs in the order of their marks.
const (
	uidA = "00000000-0000-4000-8000-00000000000a"
	uidB = "40000000-0000-4000-8000-00000000000b"
	uidC = "80000000-0000-4000-8000-00000000000c"
)

// readClaimsOf is an API server that has these NodeClaims: their names, UIDs and instances.
type readClaimsOf struct {
	client.Reader
	list  [][3]string
	err   error
	reads int
}

func (r *readClaimsOf) List(_ context.Context, to client.ObjectList, _ ...client.ListOption) error {
	r.reads++
	if kind := to.GetObjectKind().GroupVersionKind().Kind; kind != "NodeClaimList" {
		return errors.New("no kind " + kind)
	}
	for _, c := range r.list {
		u := unstructured.Unstructured{Object: map[string]any{}}
		u.SetName(c[0])
		u.SetUID(types.UID(c[1]))
		if c[2] != "" {
			u.Object["status"] = map[string]any{"providerID": ProviderID("zone", c[2])}
		}
		to.(*unstructured.UnstructuredList).Items = append(to.(*unstructured.UnstructuredList).Items, u)
	}
	return r.err
}

// belongings says of each instance whose it is.
func (own *Register) belongings() string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(own.byInstance)) {
		a := own.byInstance[id]
		text := id + "→" + a.Name + "/" + string(a.UID[:min(1, len(a.UID))])
		if a.Named && a.UID != "" {
			text += " named"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// Whose instances are that a process before this one has left, or whose launch's answer was lost.
func TestWhoseFoundInstancesAre(t *testing.T) {
	launch := func(uids ...string) []string {
		var all string
		for _, uid := range uids {
			all += ShortUID(uid)
		}
		return []string{LaunchTagKey, "token", ClaimsTagKey, all}
	}
	name := func(name string, tags ...string) []string { return append(tags, awsv1.NodeClaimTagKey, name) }
	mine := [][3]string{{"a", uidA, ""}, {"b", uidB, ""}, {"c", uidC, ""}}
	written := func(claim int, id string) [][3]string {
		out := slices.Clone(mine)
		out[claim][2] = id
		return out
	}
	for _, c := range []struct {
		name   string
		found  []ec2types.Instance
		before func(*Register)
		claims [][3]string // nil if there is nobody to ask
		want   string
		open   string
		reads  int
	}{
		{"launched for one claim", []ec2types.Instance{tagged("i-1", name("a", launch(uidA)...)...)}, nil, mine,
			"i-1→a/0 named", "", 0},
		{"launched for one claim, without its name", []ec2types.Instance{tagged("i-1", launch(uidA)...)}, nil, mine,
			"i-1→a/0", "", 1},
		{"what this process has given away", []ec2types.Instance{tagged("i-1", name("b", launch(uidA)...)...)},
			func(o *Register) { o.given("i-1", uidC, noon) }, mine, "i-1→claim-" + uidC + "/8", "", 0},
		{"what this process has given away and named", []ec2types.Instance{tagged("i-1", name("claim-"+uidC)...)},
			func(o *Register) { o.given("i-1", uidC, noon) }, mine, "i-1→claim-" + uidC + "/8 named", "", 0},
		{"what lost its name again", []ec2types.Instance{tagged("i-1", name("other")...)}, func(o *Register) {
			o.given("i-1", uidC, noon)
			o.noteNamed("i-1")
		}, mine, "i-1→claim-" + uidC + "/8", "", 0},
		{"what carries a name that this process did not know", []ec2types.Instance{tagged("i-1", name("c")...)},
			func(o *Register) {
				o.Assign(&Assignment{Claim: Claim{UID: uidC}, ID: "i-1"})
			}, mine, "i-1→/8 named", "", 0},
		{"what is gone, as an older look shows it", []ec2types.Instance{tagged("i-1", name("a", launch(uidA)...)...)},
			func(o *Register) { o.Forget("i-1", noon) }, mine, "", "", 0},
		{"a launch that is under way", []ec2types.Instance{tagged("i-1", launch(uidA, uidB)...)},
			func(o *Register) { o.callsUnderWay["token"] = &Launch{} }, mine, "", "", 0},

		{"a claim has it in its status", []ec2types.Instance{tagged("i-1", launch(uidA, uidB)...)}, nil,
			written(1, "i-1"), "i-1→b/4", "", 1},
		{"a claim has it in its status, and it carries another's name",
			[]ec2types.Instance{tagged("i-1", name("a", launch(uidA, uidB)...)...)}, nil,
			written(1, "i-1"), "i-1→b/4 named", "", 1},
		{"it carries a claim's name", []ec2types.Instance{tagged("i-1", name("b", launch(uidA, uidB)...)...)}, nil,
			mine, "i-1→b/4 named", "", 1},
		{"it carries a claim's name and nothing else, as Karpenter's", []ec2types.Instance{tagged("i-1", name("b")...)},
			nil, mine, "i-1→b/4 named", "", 1},
		{"it carries the name of a claim that it was not launched for",
			[]ec2types.Instance{tagged("i-1", name("c", launch(uidA, uidB)...)...)}, nil, mine, "", "i-1", 1},
		{"it carries nothing", []ec2types.Instance{tagged("i-1")}, nil, mine, "", "i-1", 1},
		{"it is ending, and nobody's so far", []ec2types.Instance{tagged("i-1", name("b")...)},
			func(o *Register) { o.NoteEnding("i-1", noon) }, mine,
			"i-1→b/4 named", "", 1},

		{"it was asked to end, and may be anybody's",
			[]ec2types.Instance{tagged("i-1", name("c", launch(uidA, uidB)...)...)},
			func(o *Register) { o.NoteEnding("i-1", noon) }, mine, "i-1→/", "i-1", 1},

		{"a launch for three of which two are shown",
			[]ec2types.Instance{tagged("i-2", launch(uidA, uidB, uidC)...),
				tagged("i-1", launch(uidA, uidB, uidC)...)}, nil,
			mine, "i-1→a/0, i-2→b/4", "", 1},
		{"one of its claims has another",
			[]ec2types.Instance{tagged("i-2", launch(uidA, uidB, uidC)...),
				tagged("i-1", launch(uidA, uidB, uidC)...)}, nil,
			written(0, "i-9"), "i-1→b/4, i-2→c/8", "", 1},
		{"one of its claims is gone",
			[]ec2types.Instance{tagged("i-1", launch(uidA, uidB)...),
				tagged("i-2", launch(uidA, uidB)...)}, nil, mine[1:],
			"i-1→b/4", "i-2", 1},
		{"there is nobody to ask",
			[]ec2types.Instance{tagged("i-1", launch(uidA, uidB)...), tagged("i-2", launch(uidA, uidB)...),
				tagged("i-3", launch(uidA, uidB)...)},
			nil, nil, "i-1→/0, i-2→/4", "i-3", 0},
		{"two launches",
			[]ec2types.Instance{tagged("i-1", launch(uidA, uidB)...),
				tagged("i-2", LaunchTagKey, "next", ClaimsTagKey, ShortUID(uidC))}, nil, mine,
			"i-1→a/0, i-2→c/8", "", 1},
	} {
		o := NewRegister()
		if c.before != nil {
			c.before(o)
		}
		o.unowned["i-old"] = &ec2types.Instance{}
		api := &readClaimsOf{list: c.claims}
		var from client.Reader
		if c.claims != nil {
			from = api
		}
		if err := o.resolveOwners(t.Context(), c.found, from); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got, open := o.belongings(), strings.Join(slices.Sorted(maps.Keys(o.unowned)),
			" "); got != c.want || open != c.open || api.reads != c.reads {
			t.Errorf("%s: %s; open %q; read %d times; want %s; %q; %d", c.name, got, open, api.reads, c.want, c.open,
				c.reads)
		}
	}
}

// An instance that ends, or that carries no launch, is given to nobody.
func TestWhatIsNotDealtOut(t *testing.T) {
	stopping := tagged("i-1", LaunchTagKey, "token", ClaimsTagKey, ShortUID(uidA))
	stopping.State.Name = ec2types.InstanceStateNameStopping
	unlaunched := tagged("i-2", ClaimsTagKey, ShortUID(uidA))
	o := NewRegister()
	if err := o.resolveOwners(t.Context(), []ec2types.Instance{stopping, unlaunched},
		&readClaimsOf{list: [][3]string{{"a", uidA, ""}}}); err != nil {
		t.Fatal(err)
	}
	if got := o.belongings(); got != "" || len(o.unowned) != 2 {
		t.Errorf("%s, and %d are open", got, len(o.unowned))
	}
}

// While the NodeClaims can't be read nothing is settled by them, and whoever looks is told.
func TestClaimsThatCannotBeRead(t *testing.T) {
	o := NewRegister()
	err := o.resolveOwners(t.Context(), []ec2types.Instance{tagged("i-1", awsv1.NodeClaimTagKey, "a")},
		&readClaimsOf{err: errors.New("down"), list: [][3]string{{"a", uidA, ""}}})
	if err == nil || !strings.Contains(err.Error(), "NodeClaims") || o.belongings() != "" {
		t.Errorf("%v, and %s", err, o.belongings())
	}
}

// While the NodeClaims are read, a launch may begin or end, and an instance may go: what was open before is looked at
// again.
func TestWhatHappensWhileClaimsAreRead(t *testing.T) {
	for name, change := range map[string]func(*Register){
		"it was given away":             func(o *Register) { o.given("i-1", uidC, noon) },
		"it has gone":                   func(o *Register) { o.Forget("i-1", noon) },
		"its launch is asked about":     func(o *Register) { o.callsUnderWay["token"] = &Launch{} },
		"nothing":                       func(*Register) {},
		"it was asked to end meanwhile": func(o *Register) { o.NoteEnding("i-1", noon) },
	} {
		o := NewRegister()
		api := &changing{readClaimsOf{list: [][3]string{{"a", uidA, ""}}}, func() { change(o) }}
		if err := o.resolveOwners(t.Context(),
			[]ec2types.Instance{tagged("i-1", LaunchTagKey, "token", ClaimsTagKey, ShortUID(uidA))}, api); err != nil {
			t.Fatal(err)
		}
		if got, want := o.of(uidA) == "i-1", name == "nothing"; got != want {
			t.Errorf("%s: it is the claim's: %t, want %t", name, got, want)
		}
	}
}

// changing is an API server while whose answer comes something happens.
type changing struct {
	readClaimsOf
	change func()
}

func (c *changing) List(ctx context.Context, to client.ObjectList, o ...client.ListOption) error {
	c.change()
	return c.readClaimsOf.List(ctx, to, o...)
}
