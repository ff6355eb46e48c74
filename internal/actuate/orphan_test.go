package actuate

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/command"
)

// with is a claim of the name and UID that says it has the instance.
func with(name, uid, providerID string) *v1.NodeClaim {
	c := ours(name)
	c.UID, c.Status.ProviderID = types.UID(uid), providerID
	return c
}

// The cache may be stale or empty. Before an instance is ended for nobody, the API server is asked whether somebody
// accounts for it.
func TestOrphanIsLookedForLive(t *testing.T) {
	const id = "fake://uid-1"
	for _, x := range []struct {
		name string
		live []client.Object
		want string // the error; empty if the instance is ended
	}{
		{"nobody is there", nil, ""},
		{"its claim is there", []client.Object{with("a", "uid-1", id)}, "instance fake://uid-1 is left alone: " +
			"NodeClaim a (UID uid-1) accounts for it"},
		{"its claim is there and does not know it yet", []client.Object{with("a", "uid-1", "")},
			"instance fake://uid-1 is left alone: NodeClaim a (UID uid-1) accounts for it"},
		{"its claim is there and has another", []client.Object{with("a", "uid-1", "fake://other")}, ""},
		{"another claim says that it has it", []client.Object{with("b", "uid-2", id)}, "instance fake://uid-1 is " +
			"left alone: NodeClaim b (UID uid-2) accounts for it"},
		{"only a namesake is there", []client.Object{with("a", "uid-2", "")}, ""},
	} {
		s := newStage(t, interceptor.Funcs{})
		s.actor.Live = newStage(t, interceptor.Funcs{}, x.live...).api
		if _, err := s.actor.Cloud.Create(t.Context(), ours("a")); err != nil {
			t.Fatal(err)
		}
		out := s.do(command.Terminate{UID: "uid-1", ProviderID: id})
		ending := s.ending(id)
		if x.want == "" && (out.Err != nil || !ending) || x.want != "" &&
			(out.Err == nil || out.Err.Error() != x.want || ending) {
			t.Errorf("%s: %v, ending %v, want %q", x.name, out.Err, ending, x.want)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n",
			Finalizers: []string{v1.TerminationFinalizer}}}
		if err := s.api.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		out = s.do(command.DeleteNode{Node: "n", UID: "n", ProviderID: id})
		if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		says := len(x.live) > 0 && x.live[0].(*v1.NodeClaim).Status.ProviderID == id
		if node.DeletionTimestamp.IsZero() != says || says && out.Err.Error() != "deleting node n: "+x.want {
			t.Errorf("%s: the node is deleted at %v (%v)", x.name, node.DeletionTimestamp, out.Err)
		}
	}
}

// ending reports whether the instance is on its way out or gone.
func (s *actorWorld) ending(id string) bool {
	s.Helper()
	i, err := s.actor.Cloud.Get(s.Context(), id)
	if err != nil && !cloudprovider.IsNotFound(err) {
		s.Fatal(err)
	}
	return err != nil || i.Terminating
}

// Whose an orphan is may have changed since it was listed.
func TestOrphanThatIsAnothersByNow(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	if _, err := s.actor.Cloud.Create(t.Context(), ours("a")); err != nil {
		t.Fatal(err)
	}
	out := s.do(command.Terminate{UID: "uid-0", ProviderID: "fake://uid-1"})
	want := "instance fake://uid-1 is left alone: it belongs to NodeClaim a (UID uid-1), not to the NodeClaim with " +
		"UID uid-0"
	if out.Err == nil || out.Err.Error() != want || s.ending("fake://uid-1") {
		t.Errorf("%v, want %q", out.Err, want)
	}
}

// notOurs is a cloud in which the instances are somebody else's.
type notOurs struct {
	cloudprovider.Instances
	asked int
}

func (c *notOurs) Delete(_ context.Context, id string, owner cloudprovider.Owner) error {
	c.asked++
	return &cloudprovider.NotOwnedError{ProviderID: id, Want: owner, Cluster: "another cluster"}
}

// A node may name any machine of the account. If the cloud says that it is not ours, the node is let go and the machine
// stays; an orphan without a node is told of.
func TestNodeThatNamesAStrangersMachine(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	if _, err := s.actor.Cloud.Create(t.Context(), ours("a")); err != nil {
		t.Fatal(err)
	}
	cloud := &notOurs{Instances: s.actor.Cloud}
	s.actor.Cloud = cloud
	if out := s.do(command.Terminate{Node: "n", ProviderID: "fake://uid-1"}); out.Err != nil || !out.InstanceGone ||
		cloud.asked != 1 {
		t.Errorf("a node: outcome %+v", out)
	}
	want := "terminating instance fake://uid-1: instance fake://uid-1 is left alone: it belongs to another cluster, " +
		"not to NodeClaim a (UID uid-1) of this cluster"
	if out := s.do(command.Terminate{UID: "uid-1", ProviderID: "fake://uid-1"}); out.InstanceGone || out.Err == nil ||
		out.Err.Error() != want {
		t.Errorf("an orphan: %v, want %q", out.Err, want)
	}
	if s.ending("fake://uid-1") {
		t.Error("the machine is ended")
	}
}

// A claim may say that it has the instance of another. If the other is there, the claim has nothing to end and goes; if
// it is not, the claim stays for people to look at. The instance is left alone in both cases.
func TestClaimWithAnothersInstance(t *testing.T) {
	for _, x := range []struct {
		live []client.Object
		want string
	}{
		{[]client.Object{with("a", "uid-1", "fake://uid-1"), with("b", "uid-2", "fake://uid-1")}, ""},
		{[]client.Object{with("b", "uid-2", "fake://uid-1")},
			"terminating instance fake://uid-1: instance fake://uid-1 is left alone: it belongs to NodeClaim a (UID " +
				"uid-1), not to NodeClaim b (UID uid-2)"},
	} {
		s := newStage(t, interceptor.Funcs{}, x.live...)
		if _, err := s.actor.Cloud.Create(t.Context(), ours("a")); err != nil {
			t.Fatal(err)
		}
		out := s.do(command.Terminate{Claim: "b", UID: "uid-2", ProviderID: "fake://uid-1"})
		if s.ending("fake://uid-1") || out.InstanceGone != (x.want == "") || x.want != "" &&
			(out.Err == nil || out.Err.Error() != x.want) {
			t.Errorf("outcome %+v, want %q", out, x.want)
		}
	}
}

// A claim goes when its node is gone, not before. Somebody else's finalizer may keep the node, and that may be hard to
// find out.
func TestClaimIsKeptUntilItsNodeIsGone(t *testing.T) {
	claim, now := ours("a"), metav1.Now()
	claim.DeletionTimestamp = &now
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n",
		Finalizers: []string{v1.TerminationFinalizer, "example.com/inventory"}}}
	s := newStage(t, interceptor.Funcs{}, claim, node)
	release := command.Release{Claim: "a", UID: "uid-1", Node: "n", NodeUID: "n"}
	s.actor.Live = newStage(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey,
		client.Object, ...client.GetOption) error {
		return errAway
	}}).api
	if out := s.do(release); !errors.Is(out.Err, errAway) || len(s.claim("a").Finalizers) != 1 {
		t.Fatalf("nobody knows whether the node is gone: outcome %+v", out)
	}
	s.actor.Live = s.api
	for range 2 {
		want := "releasing NodeClaim a: its instance is gone and node n is kept by the finalizers " +
			"example.com/inventory; the NodeClaim goes when the node does"
		if out := s.do(release); out.Err == nil || out.Err.Error() != want || len(s.claim("a").Finalizers) != 1 {
			t.Fatalf("outcome %+v, want %q", out, want)
		}
	}
	if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	node.Finalizers = nil
	if err := s.api.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if out := s.do(release); out.Err != nil || len(out.Writes) != 2 {
		t.Errorf("outcome %+v", out)
	}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "a"}, claim); !apierrors.IsNotFound(err) {
		t.Errorf("the claim is still there (%v)", err)
	}
}

// Claims may be thousands, and many instances are asked about at once: the list comes in pages, and a claim on any of
// them counts.
func TestClaimsComeInPages(t *testing.T) {
	const id = "fake://uid-1"
	for at, page := range map[string]string{"": "the first page", "1": "one in between", "2": "the last page"} {
		s := newStage(t, interceptor.Funcs{})
		if _, err := s.actor.Cloud.Create(t.Context(), ours("a")); err != nil {
			t.Fatal(err)
		}
		asked := 0
		s.actor.Live = newStage(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch,
			list client.ObjectList, options ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(options)
			if o.Limit == 0 || o.Limit > 500 {
				t.Errorf("%d claims are asked for at a time", o.Limit)
			}
			asked++
			if o.Continue == at {
				if err := c.List(ctx, list); err != nil {
					return err
				}
			}
			list.SetContinue(map[string]string{"": "1", "1": "2", "2": ""}[o.Continue])
			return nil
		}}, with("a", "uid-1", id)).api
		if out := s.do(command.Terminate{UID: "uid-1", ProviderID: id}); out.Err == nil || s.ending(id) || asked != 3 {
			t.Errorf("its claim is on %s: %v, ending %v, %d pages were read", page, out.Err, s.ending(id), asked)
		}
	}
}
