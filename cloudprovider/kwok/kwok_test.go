package kwok_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/conformance"
	"github.com/tenon-sh/tenon/cloudprovider/kwok"
)

// cloudOn is a conformance cloud on an API server that has a ready NodeClass.
func cloudOn(t *testing.T, a client.Client, in string) *conformance.Cloud {
	faults := &kwok.Faults{}
	var stop func()
	begin := func() cloudprovider.Provider {
		p := provider(t, a, func(o *kwok.Options) { o.Faults, o.Namespace = faults, in })
		stop = start(t, p)
		return p
	}
	pool := &v1.NodePool{}
	pool.Name = "general"
	cloud := &conformance.Cloud{Provider: begin(), Pool: pool, NodeClass: classRef()}
	cloud.Restart = func(context.Context) (cloudprovider.Provider, error) {
		stop()
		return begin(), nil
	}
	cloud.Exhaust = func(_ context.Context, offerings ...cloudprovider.OfferingRef) error {
		faults.Set(kwok.FaultSet{NoCapacity: offerings})
		return nil
	}
	cloud.Kill = func(ctx context.Context, id string) error {
		return provider(t, a, func(o *kwok.Options) { o.Namespace = in }).Kill(ctx, id)
	}
	cloud.BlockNodeClass = func(ctx context.Context) error {
		class := &kwokv1alpha1.KWOKNodeClass{}
		if err := a.Get(ctx, types.NamespacedName{Name: "default"}, class); err != nil {
			return err
		}
		meta.FindStatusCondition(class.Status.Conditions, v1.ConditionTypeReady).Status = "False"
		return a.Status().Update(ctx, class)
	}
	cloud.Close = func() { stop() }
	return cloud
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Env{New: func(context.Context) (*conformance.Cloud, error) {
		return cloudOn(t, newAPI(nodeClass(0, nil)), namespace), nil
	}})
}

func TestNodeIsWhatWasBought(t *testing.T) {
	a := newAPI(nodeClass(0, nil))
	p := provider(t, a)
	start(t, p)
	instance := create(t, p, claim("general-1", in(corev1.LabelInstanceTypeStable, "m5.large"),
		in(corev1.LabelTopologyZone, "us-west-2b"),
		in(v1.CapacityTypeLabelKey, "on-demand"), in("example.com/team", "blue")))
	if !strings.HasPrefix(instance.ProviderID, "kwok://general-1-") {
		t.Errorf("provider ID %q", instance.ProviderID)
	}
	n := waitForNode(t, a, "general-1")
	if n.Spec.ProviderID != instance.ProviderID {
		t.Errorf("the node's provider ID is %q, the instance's %q", n.Spec.ProviderID, instance.ProviderID)
	}
	for key, want := range map[string]string{
		corev1.LabelInstanceTypeStable:      "m5.large",
		corev1.LabelTopologyZone:            "us-west-2b",
		corev1.LabelTopologyRegion:          "us-west-2",
		corev1.LabelArchStable:              "amd64",
		corev1.LabelOSStable:                "linux",
		corev1.LabelHostname:                "general-1",
		v1.CapacityTypeLabelKey:             "on-demand",
		v1.NodePoolLabelKey:                 "general",
		kwokv1alpha1.InstanceFamilyLabelKey: "m5",
		kwokv1alpha1.InstanceSizeLabelKey:   "large",
		kwokv1alpha1.InstanceCPULabelKey:    "2",
		kwokv1alpha1.InstanceMemoryLabelKey: "8Gi",
		"kwok.x-k8s.io/node":                "fake",
		"eks-node-viewer/instance-price":    "0.096000",
		"example.com/team":                  "blue",
	} {
		if got := n.Labels[key]; got != want {
			t.Errorf("label %s = %q, want %q", key, got, want)
		}
	}
	if n.Annotations["kwok.x-k8s.io/node"] != "fake" {
		t.Errorf("annotations %v", n.Annotations)
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0] != v1.UnregisteredNoExecuteTaint() {
		t.Errorf("taints %v, want only %v", n.Spec.Taints, v1.UnregisteredNoExecuteTaint())
	}
	// Kubernetes keeps pods off a node that says so, and not off one that says nothing.
	if c := n.Status.Conditions; len(c) != 1 || c[0].Type != corev1.NodeReady || c[0].Status != corev1.ConditionFalse {
		t.Errorf("conditions %v, want one: not ready yet", c)
	}
	if n.Status.Capacity.Cpu().Value() != 2 || n.Status.Allocatable.Cpu().MilliValue() != 1930 ||
		n.Status.Allocatable.Pods().Value() != 29 {
		t.Errorf("capacity %v, allocatable %v", n.Status.Capacity, n.Status.Allocatable)
	}
}

func TestNodeClassMustBeUsable(t *testing.T) {
	deleting := nodeClass(0, nil)
	now := deleting.CreationTimestamp
	now.Time = time.Now()
	deleting.DeletionTimestamp, deleting.Finalizers = &now, []string{"example.com/wait"}
	fresh := nodeClass(0, nil)
	fresh.Status.Conditions = nil
	blocked := nodeClass(0, nil)
	blocked.Status.Conditions[0].Status, blocked.Status.Conditions[0].Message = "False", "the moon is wrong"
	other := claim("c")
	other.Spec.NodeClassRef.Kind = "EC2NodeClass"
	for _, test := range []struct {
		name  string
		class client.Object
		claim *v1.NodeClaim
		want  string
	}{
		{"missing", &corev1.Namespace{}, claim("c"), "does not exist"},
		{"deleting", deleting, claim("c"), "being deleted"},
		{"without a condition", fresh, claim("c"), "no Ready condition"},
		{"not ready", blocked, claim("c"), "the moon is wrong"},
		{"of another cloud", nodeClass(0, nil), other, "kind KWOKNodeClass"},
		{"with a fault that can't be read", nodeClass(0, map[string]string{kwok.FaultLaunchDelay: "soon"}), claim("c"),
			`"soon" is not a duration`},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.class.SetName(orDefault(test.class.GetName()))
			_, err := provider(t, newAPI(test.class)).Create(t.Context(), test.claim)
			if !cloudprovider.IsNotReady(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want NotReady with %q", err, test.want)
			}
		})
	}
}

func orDefault(name string) string {
	if name == "" {
		return "default"
	}
	return name
}

func TestErrorsOfTheAPIBecomeErrorsOfACloud(t *testing.T) {
	pods := schema.GroupResource{Resource: "configmaps"}
	for _, test := range []struct {
		err error
		is  func(error) bool
	}{
		{apierrors.NewTooManyRequests("slow down", 1), cloudprovider.IsThrottled},
		{apierrors.NewForbidden(pods, "x", fmt.Errorf("no")), cloudprovider.IsUnauthorized},
		{apierrors.NewUnauthorized("who are you"), cloudprovider.IsUnauthorized},
	} {
		a := newAPI(nodeClass(0, nil))
		p := provider(t, a)
		a.interfere(func(_ string, obj runtime.Object) (error, error) {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				return test.err, nil
			}
			return nil, nil
		})
		if _, err := p.Create(t.Context(), claim("c")); !test.is(err) {
			t.Errorf("Create: %v became %v (%T)", test.err, err, err)
		}
		if _, err := p.Get(t.Context(), "kwok://c"); !test.is(err) {
			t.Errorf("Get: %v became %v (%T)", test.err, err, err)
		}
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	if _, err := kwok.New(kwok.Options{}); err == nil || !strings.Contains(err.Error(), "Options.API") {
		t.Errorf("error %v", err)
	}
	if _, err := kwok.New(kwok.Options{API: newAPI()}); err == nil || !strings.Contains(err.Error(), "Options.Types") {
		t.Errorf("error %v", err)
	}
}

func TestForeignConfigMapsAreNotInstances(t *testing.T) {
	other := &corev1.ConfigMap{}
	other.Namespace, other.Name = namespace, "settings"
	p := provider(t, newAPI(nodeClass(0, nil), other))
	if _, err := p.Get(t.Context(), "kwok://settings"); !cloudprovider.IsNotFound(err) {
		t.Errorf("Get of a ConfigMap that is no instance: %v", err)
	}
	if err := p.Delete(t.Context(), "kwok://settings", cloudprovider.Owner{}); !cloudprovider.IsNotFound(err) {
		t.Errorf("Delete of a ConfigMap that is no instance: %v", err)
	}
	if all, err := p.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("List = %v, %v", all, err)
	}
	for _, id := range []string{"aws:///us-west-2a/i-0123", "kwok://", ""} {
		if _, err := p.Get(t.Context(), id); !cloudprovider.IsNotFound(err) {
			t.Errorf("Get(%q): %v", id, err)
		}
	}
}
