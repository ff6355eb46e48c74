package refresh_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/refresh"
)

// tags notes what is written on instances.
type tags struct {
	written []string
	err     error
	// identity is what the instance carries already.
	identity string
}

func (t *tags) DescribeInstances(
	_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options),
) (*ec2.DescribeInstancesOutput, error) {
	i := ec2types.Instance{InstanceId: &in.InstanceIds[0]}
	if t.identity != "" {
		i.Tags = []ec2types.Tag{{Key: new("tenon.sh/cluster"), Value: &t.identity}}
	}
	return &ec2.DescribeInstancesOutput{Reservations: []ec2types.Reservation{{Instances: []ec2types.Instance{i}}}}, nil
}

func (t *tags) CreateTags(_ context.Context, in *ec2.CreateTagsInput, _ ...func(*ec2.Options)) (*ec2.CreateTagsOutput,
	error) {
	if t.err != nil {
		return nil, t.err
	}
	for _, tag := range in.Tags {
		t.written = append(t.written, fmt.Sprintf("%s %s=%s", in.Resources[0], *tag.Key, *tag.Value))
	}
	return &ec2.CreateTagsOutput{}, nil
}

// lessons notes what is learnt.
type lessons struct{ learnt []string }

func (l *lessons) Learn(instanceType, imageID string, capacity resource.Quantity) {
	l.learnt = append(l.learnt, fmt.Sprintf("%s %s %s", instanceType, imageID, capacity.String()))
}

type nodeScene struct {
	t    *testing.T
	kube client.Client
	tags tags
	// identity is the cluster's; empty for none.
	identity string
	lessons
}

func newNodeScene(t *testing.T, change func(*corev1.Node, *v1.NodeClaim)) *nodeScene {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme, awsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-1"}}
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	claim.Status.ImageID, claim.Status.ProviderID = "ami-1", "aws:///us-west-2a/i-1"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "ip-10-0-0-4", Labels: map[string]string{v1.NodeRegisteredLabelKey: "true",
			corev1.LabelInstanceTypeStable: "m5.large"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: v1.GroupVersion().String(), Kind: "NodeClaim",
			Name: "general-1", UID: "u"}},
	}}
	node.Spec.ProviderID = "aws:///us-west-2a/i-1"
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("7Gi")}
	change(node, claim)
	return &nodeScene{t: t, kube: fake.NewClientBuilder().WithScheme(scheme).WithObjects(node, claim).Build()}
}

func (s *nodeScene) look() error {
	n := &refresh.Nodes{Client: s.kube, EC2: &s.tags, Memory: s, Cluster: "prod", Identity: s.identity}
	_, err := n.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "ip-10-0-0-4"}})
	return err
}

func (s *nodeScene) noted() string {
	claim := &v1.NodeClaim{}
	if err := s.kube.Get(s.t.Context(), client.ObjectKey{Name: "general-1"}, claim); err != nil {
		s.t.Fatal(err)
	}
	return claim.Annotations[awsv1.InstanceTaggedAnnotationKey]
}

func TestARegisteredNodeNamesItsInstance(t *testing.T) {
	s := newNodeScene(t, func(*corev1.Node, *v1.NodeClaim) {})
	for range 2 { // the second look finds nothing to do
		if err := s.look(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(s.tags.written), "[i-1 Name=ip-10-0-0-4 i-1 karpenter.sh/nodeclaim=general-1 i-1 "+
		"eks:eks-cluster-name=prod]"; got != want {
		t.Errorf("written %s, want %s", got, want)
	}
	if s.noted() != "true" {
		t.Error("the claim does not say that its instance is named")
	}
	if got, want := fmt.Sprint(s.learnt), "[m5.large ami-1 7Gi m5.large ami-1 7Gi]"; got != want {
		t.Errorf("learnt %s, want %s", got, want)
	}
}

// A user who names instances in the class means it.
func TestAUsersNameStays(t *testing.T) {
	s := newNodeScene(t, func(*corev1.Node, *v1.NodeClaim) {})
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.Tags = map[string]string{awsv1.NameTagKey: "mine"}
	if err := s.kube.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if err := s.look(); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.tags.written),
		"[i-1 karpenter.sh/nodeclaim=general-1 i-1 eks:eks-cluster-name=prod]"; got != want {
		t.Errorf("written %s, want %s", got, want)
	}
}

// An instance that an old Karpenter launched has its names and lacks the cluster's.
func TestAnAdoptedInstanceGetsTheNameOfItsCluster(t *testing.T) {
	s := newNodeScene(t, func(_ *corev1.Node, c *v1.NodeClaim) {
		c.Annotations = map[string]string{awsv1.InstanceTaggedAnnotationKey: "true"}
	})
	for range 2 {
		if err := s.look(); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.tags.written) != 3 || s.tags.written[2] != "i-1 eks:eks-cluster-name=prod" {
		t.Errorf("written %v", s.tags.written)
	}
}

func TestNodesThatAreLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node, *v1.NodeClaim){
		"not registered":   func(n *corev1.Node, _ *v1.NodeClaim) { delete(n.Labels, v1.NodeRegisteredLabelKey) },
		"nobody's":         func(n *corev1.Node, _ *v1.NodeClaim) { n.OwnerReferences = nil },
		"of another claim": func(n *corev1.Node, _ *v1.NodeClaim) { n.OwnerReferences[0].Name = "gone" },
		"of another cloud": func(_ *corev1.Node, c *v1.NodeClaim) {
			c.Spec.NodeClassRef.Group = "karpenter.kwok.sh"
		},
		"not an instance of EC2": func(n *corev1.Node, _ *v1.NodeClaim) { n.Spec.ProviderID = "kwok://x" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newNodeScene(t, change)
			if err := s.look(); err != nil || len(s.tags.written) != 0 || s.noted() != "" {
				t.Errorf("%v, written %v, noted %q", err, s.tags.written, s.noted())
			}
		})
	}
}

func TestTroubleWithTags(t *testing.T) {
	s := newNodeScene(t, func(*corev1.Node, *v1.NodeClaim) {})
	s.tags.err = &smithy.GenericAPIError{Code: "UnauthorizedOperation", Message: "no"}
	if err := s.look(); err == nil || s.noted() != "" {
		t.Errorf("%v, noted %q", err, s.noted())
	}
	s.tags.err = &smithy.GenericAPIError{Code: "InvalidInstanceID.NotFound", Message: "gone"}
	if err := s.look(); err != nil || s.noted() != "" {
		t.Errorf("of an instance that is gone: %v, noted %q", err, s.noted())
	}
}

// An instance that a claim of this cluster accounts for, and that was launched without the cluster's identity, gets it
// once. One of which the claim says something else, and one that has it from its launch, do not.
func TestInstanceGetsTheIdentity(t *testing.T) {
	done := func(c *v1.NodeClaim) {
		c.Annotations = map[string]string{awsv1.InstanceTaggedAnnotationKey: "true",
			"compatibility.karpenter.k8s.aws/cluster-name-tagged": "true"}
		c.Status.ProviderID = "aws:///us-west-2a/i-1"
	}
	for _, x := range []struct {
		name   string
		change func(*v1.NodeClaim)
		err    error
		want   string
	}{
		{"from Karpenter", func(*v1.NodeClaim) {}, nil, "[i-1 tenon.sh/cluster=uid]"},
		{"ours", func(c *v1.NodeClaim) { c.Annotations["tenon.sh/cluster-tagged"] = "true" }, nil, "[]"},
		{"the claim has another instance", func(c *v1.NodeClaim) {
			c.Status.ProviderID = "aws:///us-west-2a/i-2"
		}, nil, "[]"},
		{"the policy does not allow it", func(*v1.NodeClaim) {}, &smithy.GenericAPIError{Code: "UnauthorizedOperation"},
			"[]"},
	} {
		s := newNodeScene(t, func(_ *corev1.Node, c *v1.NodeClaim) { done(c); x.change(c) })
		s.identity, s.tags.err = "uid", x.err
		for range 2 {
			if err := s.look(); err != nil {
				t.Errorf("%s: %v", x.name, err)
			}
		}
		if got := fmt.Sprint(s.tags.written); got != x.want {
			t.Errorf("%s: written %s, want %s", x.name, got, x.want)
		}
	}
	s := newNodeScene(t, func(_ *corev1.Node, c *v1.NodeClaim) { done(c) })
	s.identity, s.tags.identity = "uid", "of another cluster"
	if err := s.look(); err != nil || len(s.tags.written) > 0 {
		t.Errorf("it is another cluster's: %v, written %v", err, s.tags.written)
	}
}

// An instance that carries another cluster's identity gets no tag of ours at all: the name of our claim and of our
// cluster would hide it from its own cluster, just like our identity.
func TestAnInstanceOfAnotherClusterGetsNoTag(t *testing.T) {
	s := newNodeScene(t, func(_ *corev1.Node, c *v1.NodeClaim) { c.Status.ProviderID = "aws:///us-west-2a/i-1" })
	s.identity, s.tags.identity = "uid", "of another cluster"
	if err := s.look(); err != nil || len(s.tags.written) > 0 {
		t.Errorf("%v, written %v", err, s.tags.written)
	}
}

// TestOldNodesGetTheirClass: a Karpenter before 1.1 gave nodes and claims no label of their class; without it a node
// that loses its claim would be nobody's.
func TestOldNodesGetTheirClass(t *testing.T) {
	const key = "karpenter.k8s.aws/ec2nodeclass"
	for name, tc := range map[string]struct {
		change      func(*corev1.Node, *v1.NodeClaim)
		claim, node string
	}{
		"both lack it": {func(*corev1.Node, *v1.NodeClaim) {}, "default", "default"},
		"the node lacks it": {func(_ *corev1.Node, c *v1.NodeClaim) {
			c.Labels = map[string]string{key: "mine"}
		}, "mine", "default"},
		"another's claim": {func(_ *corev1.Node, c *v1.NodeClaim) {
			c.Spec.NodeClassRef.Group = "eks.amazonaws.com"
		}, "", ""},
		"another's instance": {func(_ *corev1.Node, c *v1.NodeClaim) {
			c.Status.ProviderID = "aws:///us-west-2a/i-2"
		}, "", ""},
		"not registered": {func(n *corev1.Node, _ *v1.NodeClaim) {
			delete(n.Labels, v1.NodeRegisteredLabelKey)
		}, "", ""},
		"the claim is leaving": {func(_ *corev1.Node, c *v1.NodeClaim) {
			c.Finalizers, c.DeletionTimestamp = []string{v1.TerminationFinalizer}, new(metav1.Now())
		}, "", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newNodeScene(t, tc.change)
			if err := s.look(); err != nil {
				t.Fatal(err)
			}
			claim, node := &v1.NodeClaim{}, &corev1.Node{}
			if err := s.kube.Get(t.Context(), client.ObjectKey{Name: "general-1"}, claim); err != nil {
				t.Fatal(err)
			}
			if err := s.kube.Get(t.Context(), client.ObjectKey{Name: "ip-10-0-0-4"}, node); err != nil {
				t.Fatal(err)
			}
			if claim.Labels[key] != tc.claim || node.Labels[key] != tc.node {
				t.Errorf("the claim has the class %q, the node %q, want %q and %q",
					claim.Labels[key], node.Labels[key], tc.claim, tc.node)
			}
		})
	}
}
