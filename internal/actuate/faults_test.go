package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

var errAway = errors.New("the connection was reset")

// line is the connection to the API server and the cloud. It counts the calls; one of them fails, before it is carried
// out or after.
type line struct {
	cloudprovider.Instances
	calls, fails int
	after        bool
}

func (l *line) call(do func() error) error {
	l.calls++
	if l.calls != l.fails {
		return do()
	}
	if l.after {
		if err := do(); err != nil {
			return err
		}
	}
	return errAway
}

// api has every call to the API server go through the line.
func (l *line) api() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			return l.call(func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return l.call(func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return l.call(func() error { return c.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return l.call(func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			return l.call(func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return l.call(func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, obj, body client.Object,
			opts ...client.SubResourceCreateOption) error {
			return l.call(func() error { return c.SubResource(sub).Create(ctx, obj, body, opts...) })
		},
	}
}

func (l *line) Create(ctx context.Context, claim *v1.NodeClaim) (i *cloudprovider.Instance, err error) {
	err = l.call(func() error { i, err = l.Instances.Create(ctx, claim); return err })
	return i, err
}

func (l *line) Get(ctx context.Context, id string) (i *cloudprovider.Instance, err error) {
	err = l.call(func() error { i, err = l.Instances.Get(ctx, id); return err })
	return i, err
}

func (l *line) List(ctx context.Context) (out []*cloudprovider.Instance, err error) {
	err = l.call(func() error { out, err = l.Instances.List(ctx); return err })
	return out, err
}

func (l *line) Delete(ctx context.Context, id string, owner cloudprovider.Owner) error {
	return l.call(func() error {
		if i, err := l.Instances.Get(ctx, id); err == nil && i.Terminating {
			return nil // a machine takes its time to go
		}
		return l.Instances.Delete(ctx, id, owner)
	})
}

// errand is a command and what is there when it is carried out.
type errand struct {
	name string
	c    command.Command
	// before are commands that have been carried out.
	before []command.Command
	change func(claim *v1.NodeClaim, node *corev1.Node)
}

// run carries an errand out on a line that fails one call, and tells what became of it, and what a second try leaves
// behind.
func (e *errand) run(t *testing.T, fails int, after bool) (out, again command.Outcome, left string, calls int) {
	t.Helper()
	claim := ours("a")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "n"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{v1.UnregisteredNoExecuteTaint()}}}
	if e.change != nil {
		e.change(claim, node)
	}
	l := &line{}
	s := newStage(t, l.api(), claim, node, waitingPod(), &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default",
		UID: "p"}})
	l.Instances, s.actor.Cloud = s.actor.Cloud, l
	for _, c := range e.before {
		if out := s.do(c); out.Err != nil {
			t.Fatalf("%s: before it: %v", e.name, out.Err)
		}
	}
	l.calls, l.fails, l.after = 0, fails, after
	out = s.do(e.c)
	calls, l.fails = l.calls, 0
	again = out
	if out.Err != nil {
		again = s.do(e.c)
	}
	return out, again, s.all(), calls
}

// all is what the API server and the cloud have, without versions and times.
func (s *actorWorld) all() string {
	s.Helper()
	claims, nodes, pools := &v1.NodeClaimList{}, &corev1.NodeList{}, &v1.NodePoolList{}
	for _, list := range []client.ObjectList{claims, nodes, pools} {
		if err := s.api.List(s.Context(), list); err != nil {
			s.Fatal(err)
		}
	}
	text := ""
	for _, c := range claims.Items {
		text += fmt.Sprintln("claim", c.Name, c.Labels, c.Annotations, c.Finalizers, c.DeletionTimestamp != nil,
			c.Status.ProviderID, c.Status.NodeName, c.Status.LastPodEventTime)
		for _, cond := range c.Status.Conditions {
			text += fmt.Sprintln(" ", cond.Type, cond.Status, cond.Reason, cond.Message)
		}
	}
	for _, n := range nodes.Items {
		text += fmt.Sprintln("node", n.Name, n.Labels, n.Annotations, n.Finalizers, len(n.OwnerReferences),
			n.DeletionTimestamp != nil, n.Spec.Taints, n.Spec.Unschedulable)
	}
	for _, p := range pools.Items {
		text += fmt.Sprintln("pool", p.Name, p.Annotations, p.Status.Nodes)
	}
	instances, err := s.actor.Cloud.List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, i := range instances {
		text += fmt.Sprintln("instance", i.ProviderID, i.Terminating)
	}
	return text
}

func errands() []errand {
	launch := command.LaunchInstance{Claim: "a", UID: "uid-1"}
	fence := command.Fence{Claim: "a", Node: "a", Reason: command.Underutilized, Move: "m"}
	leaving := func(claim *v1.NodeClaim, node *corev1.Node) {
		now := metav1.Now()
		claim.DeletionTimestamp, node.Finalizers = &now, []string{v1.TerminationFinalizer}
	}
	const id = "fake://uid-1"
	return []errand{
		{name: "create", c: command.CreateClaim{Name: "b", Template: cluster.Template{ExpireAfter: "Never"}}},
		{name: "create once more", c: command.CreateClaim{Name: "a", Template: cluster.Template{ExpireAfter: "Never"}}},
		{name: "adopt", c: command.Adopt{Claim: "a"}, change: func(claim *v1.NodeClaim, _ *corev1.Node) {
			claim.Finalizers = nil
		}},
		{name: "launch", c: launch},
		{name: "register", c: command.Register{Claim: "a", Node: "a", KeepFor: "m"}, before: []command.Command{launch}},
		{name: "open", c: command.Open{Claim: "a", Node: "a"}, before: []command.Command{launch,
			command.Register{Claim: "a", Node: "a", KeepFor: "m"}}},
		{name: "initialize", c: command.Initialize{Claim: "a", Node: "a"}, before: []command.Command{launch}},
		{name: "fence", c: fence},
		{name: "fence for no move", c: command.Fence{Claim: "a", Node: "a", Reason: command.Empty},
			before: []command.Command{fence}},
		{name: "fence because somebody asked", c: command.Fence{Claim: "a", Node: "a", Reason: command.Requested}},
		{name: "unfence", c: command.Unfence{Claim: "a", Node: "a"}, before: []command.Command{fence}},
		{name: "unfence and rest", c: command.Unfence{Claim: "a", Node: "a", RestUntil: deadline, Rests: 2},
			before: []command.Command{fence}},
		{name: "delete", c: command.DeleteClaim{Claim: "a", UID: "uid-1", Deadline: deadline, Missing: "gone"}},
		{name: "delete a node", c: command.DeleteNode{Node: "a", UID: "n", ProviderID: id}},
		{name: "evict", c: command.Evict{Pod: "default/web", UID: "uid-web", Namespace: "default", Name: "web"}},
		{name: "delete a pod", c: command.Evict{Pod: "default/web", UID: "uid-web", Namespace: "default", Name: "web",
			Delete: true}},
		{name: "nominate", c: nomination("uid-web", "a")},
		{name: "terminate", c: command.Terminate{Claim: "a", UID: "uid-1", ProviderID: id, Node: "a", Drained: true,
			DuplicateNodes: []string{"b"}}, before: []command.Command{launch}},
		{name: "terminate what nobody saw launched", c: command.Terminate{Claim: "a", Missing: "gone"},
			before: []command.Command{launch}},
		{name: "terminate an orphan", c: command.Terminate{UID: "uid-1", ProviderID: id},
			before: []command.Command{launch},
			change: func(claim *v1.NodeClaim, _ *corev1.Node) { claim.UID = "" }},
		{name: "release", c: command.Release{Claim: "a", UID: "uid-1", Node: "a", NodeUID: "n"}, change: leaving},
		{name: "release a node", c: command.Release{Node: "a", NodeUID: "n"}, change: leaving},
		{name: "status of a pool", c: command.SetPool{Pool: "default", Status: command.PoolStatus{Nodes: 3}}},
		{name: "status of a claim", c: command.SetClaim{Claim: "a", Deadline: deadline, LastPodEvent: deadline}},
		{name: "stamp a pool", c: command.WritePoolHash{Pool: "default", Hash: "1", Version: "v3"}},
		{name: "stamp a claim", c: command.WriteClaimHash{Claim: "a", UID: "uid-1", Hash: "1", Version: "v3"}},
	}
}

// A call that fails, or whose answer is lost, is an error of the command, unless the command is done all the same.
// Another try ends as if nothing had failed.
func TestEveryFailedCallIsToldAndMendedByAnotherTry(t *testing.T) {
	for _, e := range errands() {
		smooth, _, want, calls := e.run(t, 0, false)
		if smooth.Err != nil || calls == 0 {
			t.Errorf("%s: %v after %d calls with nothing in the way", e.name, smooth.Err, calls)
			continue
		}
		for fails := 1; fails <= calls; fails++ {
			for _, after := range []bool{false, true} {
				out, again, left, _ := e.run(t, fails, after)
				at := fmt.Sprintf("%s, call %d of %d lost (after it was done: %t)", e.name, fails, calls, after)
				did, all := written(out), written(smooth)
				if out.Err == nil && (!slices.Equal(did, all) || out.InstanceGone != smooth.InstanceGone ||
					out.RetryAfter != smooth.RetryAfter) || out.Err != nil && !errors.Is(out.Err, errAway) {
					t.Errorf("%s: outcome %+v, want the error or %+v", at, out, smooth)
				}
				if out.Err != nil && (len(did) > len(all) || !slices.Equal(did, all[:len(did)]) || out.InstanceGone ||
					out.Refused) {
					t.Errorf("%s: a command that failed claims to have done something else: %+v", at, out)
				}
				if again.Err != nil || left != want || again.InstanceGone != smooth.InstanceGone ||
					again.RetryAfter != smooth.RetryAfter {
					t.Errorf("%s: another try (%+v) leaves\n%swant %+v\n%s", at, again, left, smooth, want)
				}
			}
		}
	}
}

// written is what an outcome says was written, without versions.
func written(out command.Outcome) []command.Write {
	var list []command.Write
	for _, w := range out.Writes {
		w.Version = ""
		list = append(list, w)
	}
	return list
}
