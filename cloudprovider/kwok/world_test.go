package kwok_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/kwok"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/catalog"
)

const namespace = "cloud"

// ask is a call on its way to the API server. A test may fail it before it does anything, or after.
type ask func(verb string, obj runtime.Object) (before, after error)

// api is an API server in memory that a test can look at and interfere with.
type api struct {
	client.Client
	calls atomic.Int64
	mu    sync.Mutex
	ask   ask
}

// newScheme knows the kinds of Kubernetes and ours.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

func newAPI(objects ...client.Object) *api {
	return &api{Client: fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objects...).
		WithStatusSubresource(&kwokv1alpha1.KWOKNodeClass{}).Build()}
}

// interfere lets the function see every call from now on; nil ends it.
func (a *api) interfere(with ask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ask = with
}

// call does what a real client does with a cancelled context, which the one in memory ignores.
func (a *api) call(ctx context.Context, verb string, obj runtime.Object, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer a.calls.Add(1)
	a.mu.Lock()
	var before, after error
	if a.ask != nil {
		before, after = a.ask(verb, obj)
	}
	a.mu.Unlock()
	if before != nil {
		return before
	}
	return errors.Join(do(), after)
}

func (a *api) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return a.call(ctx, "get", obj, func() error { return a.Client.Get(ctx, key, obj, opts...) })
}

func (a *api) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return a.call(ctx, "list", list, func() error { return a.Client.List(ctx, list, opts...) })
}

func (a *api) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return a.call(ctx, "create", obj, func() error { return a.Client.Create(ctx, obj, opts...) })
}

func (a *api) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return a.call(ctx, "patch", obj, func() error { return a.Client.Patch(ctx, obj, patch, opts...) })
}

func (a *api) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return a.call(ctx, "delete", obj, func() error { return a.Client.Delete(ctx, obj, opts...) })
}

// nodeClass is a ready KWOKNodeClass named default.
func nodeClass(delay time.Duration, annotations map[string]string) *kwokv1alpha1.KWOKNodeClass {
	class := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: annotations}}
	class.Spec.NodeRegistrationDelay.Duration = delay
	class.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeReady, Status: metav1.ConditionTrue,
		Reason: "Ready"}}
	return class
}

func classRef() v1.NodeClassReference {
	return v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"}
}

func claim(name string, requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodeClaim {
	ref := classRef()
	c := &v1.NodeClaim{}
	c.Name, c.UID = name, types.UID("uid-of-"+name)
	c.Labels = map[string]string{v1.NodePoolLabelKey: "general"}
	c.Spec.NodeClassRef = &ref
	c.Spec.Requirements = requirements
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return c
}

func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// provider returns a provider of the default catalog that is not started.
func provider(t *testing.T, a kwok.API, change ...func(*kwok.Options)) *kwok.Provider {
	t.Helper()
	types, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	o := kwok.Options{API: a, Types: types, Namespace: namespace}
	for _, c := range change {
		c(&o)
	}
	p, err := kwok.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// start runs the provider until the returned function is called, which waits for its end, or until the test's end.
func start(t *testing.T, p *kwok.Provider) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func create(t *testing.T, p *kwok.Provider, c *v1.NodeClaim) *cloudprovider.Instance {
	t.Helper()
	instance, err := p.Create(t.Context(), c)
	if err != nil {
		t.Fatalf("creating the instance of %s: %v", c.Name, err)
	}
	return instance
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not so after 20 s: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func getNode(t *testing.T, a client.Reader, name string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	err := a.Get(context.Background(), types.NamespacedName{Name: name}, n)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func waitForNode(t *testing.T, a client.Reader, name string) *corev1.Node {
	t.Helper()
	var n *corev1.Node
	eventually(t, "node "+name+" has joined", func() bool { n = getNode(t, a, name); return n != nil })
	return n
}
