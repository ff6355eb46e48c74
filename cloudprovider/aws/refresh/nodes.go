package refresh

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// EC2API is what is asked of EC2.
type EC2API interface {
	DescribeInstances(
		ctx context.Context, in *ec2.DescribeInstancesInput, opts ...func(*ec2.Options),
	) (*ec2.DescribeInstancesOutput, error)
	CreateTags(ctx context.Context, in *ec2.CreateTagsInput, opts ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error)
}

// Memory learns how much memory nodes of a type really have; machine.Memory does.
type Memory interface {
	Learn(instanceType, imageID string, capacity resource.Quantity)
}

// Nodes looks at each node once it has registered: it learns from it, and writes the names of node and claim on its
// instance, where people look for them. Those that are there at the start may be of an old Karpenter, and get what
// they lack.
type Nodes struct {
	// Client reads Nodes and NodeClaims, annotates NodeClaims and labels both.
	Client client.Client
	EC2    EC2API
	Memory Memory
	// Cluster is the name of the cluster; Identity tells it from others of the same name. Without one no instance is
	// marked with it.
	Cluster, Identity string
}

// clusterTagged on a NodeClaim says that its instance carries the name of the cluster, which those of an old Karpenter
// lack.
const clusterTagged = "compatibility.karpenter.k8s.aws/cluster-name-tagged"

// Setup makes the manager run it.
func (n *Nodes) Setup(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("nodeclaim.tagging").
		For(&corev1.Node{}, builder.WithPredicates(justRegistered())).
		Complete(n)
	if err != nil {
		return fmt.Errorf("setting up the naming of instances: %w", err)
	}
	return nil
}

// justRegistered lets nodes pass when they register, and those that are there at the start.
func justRegistered() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return registered(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return registered(e.ObjectNew) && !registered(e.ObjectOld) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func registered(node client.Object) bool {
	return node.GetLabels()[v1.NodeRegisteredLabelKey] == "true"
}

// Reconcile implements reconcile.Reconciler.
func (n *Nodes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := n.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owner := slices.IndexFunc(node.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "NodeClaim" })
	if owner < 0 || !registered(node) {
		return ctrl.Result{}, nil
	}
	claim := &v1.NodeClaim{}
	if err := n.Client.Get(ctx, types.NamespacedName{Name: node.OwnerReferences[owner].Name}, claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !refersToClass(claim) {
		return ctrl.Result{}, nil
	}
	n.learn(node, claim)
	if claim.Status.ProviderID != node.Spec.ProviderID {
		return ctrl.Result{}, nil // whose the instance is, is not certain
	}
	foreign, err := n.identify(ctx, node, claim)
	if err != nil || foreign {
		return ctrl.Result{}, err
	}
	if err := n.labelClass(ctx, node, claim); err != nil {
		return ctrl.Result{}, err
	}
	done := claim.Annotations[awsv1.InstanceTaggedAnnotationKey] == "true" && claim.Annotations[clusterTagged] == "true"
	if done || !claim.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, n.tag(ctx, node, claim)
}

// labelClass labels a node and its claim with their EC2NodeClass, if they lack that: before 1.1 Karpenter did not. By
// the label a node is known as ours even if it loses its claim.
func (n *Nodes) labelClass(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim) error {
	key := v1.NodeClassLabelKey(awsv1.Group, awsv1.Kind)
	for _, o := range []client.Object{claim, node} {
		if _, has := o.GetLabels()[key]; has || !o.GetDeletionTimestamp().IsZero() {
			continue
		}
		before := o.DeepCopyObject().(client.Object)
		labels := maps.Clone(o.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = claim.Spec.NodeClassRef.Name
		o.SetLabels(labels)
		if err := n.Client.Patch(ctx, o, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("labelling %s with its EC2NodeClass: %w", o.GetName(), err)
		}
	}
	return nil
}

// identify writes the cluster's identity on an instance that was launched without one, by Karpenter or by an older
// version: its claim says that it is this cluster's. One that carries another cluster's identity keeps it, whatever a
// claim says: with ours on it the other cluster could lose its machine. foreign says that it is so. Where the policy
// does not allow the tag, the instance stays without.
func (n *Nodes) identify(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim) (foreign bool, err error) {
	id, ok := instanceOf(node)
	tagged := claim.Annotations[ownership.IdentityTaggedAnnotationKey] == "true"
	if !ok || n.Identity == "" || tagged || !claim.DeletionTimestamp.IsZero() {
		return false, nil
	}
	other, err := n.identityOf(ctx, id)
	switch {
	case err == nil && other != "" && other != n.Identity:
		log.FromContext(ctx).Error(nil, "the instance of a node has the identity tag of another cluster, "+
			"which is not changed; delete the NodeClaim if the node does not belong to this cluster",
			"Node", node.Name, "NodeClaim", claim.Name, "instance", id, "identity", other)
		return true, nil
	case err == nil && other == "":
		_, err = n.EC2.CreateTags(ctx, &ec2.CreateTagsInput{
			Resources: []string{id},
			Tags:      []ec2types.Tag{{Key: new(ownership.IdentityTagKey), Value: &n.Identity}},
		})
	}
	if fault.IsNotFound(err) || fault.IsUnauthorized(err) {
		return false, nil
	}
	if err != nil {
		return false, fault.Explain("marking the instance of node "+node.Name+" as this cluster's", err)
	}
	return false, n.note(ctx, claim, ownership.IdentityTaggedAnnotationKey)
}

// identityOf is the identity of the cluster that the instance carries; empty if it has none.
func (n *Nodes) identityOf(ctx context.Context, id string) (string, error) {
	out, err := n.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return "", err
	}
	for _, r := range out.Reservations {
		for i := range r.Instances {
			for _, tag := range r.Instances[i].Tags {
				if tag.Key != nil && *tag.Key == ownership.IdentityTagKey && tag.Value != nil {
					return *tag.Value, nil
				}
			}
		}
	}
	return "", nil
}

// instanceOf is the id of the node's instance.
func instanceOf(node *corev1.Node) (id string, ok bool) {
	id = node.Spec.ProviderID[strings.LastIndex(node.Spec.ProviderID, "/")+1:]
	return id, strings.HasPrefix(id, "i-")
}

// note writes on the claim that something is done.
func (n *Nodes) note(ctx context.Context, claim *v1.NodeClaim, keys ...string) error {
	before := claim.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	for _, key := range keys {
		claim.Annotations[key] = "true"
	}
	if err := n.Client.Patch(ctx, claim, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting on NodeClaim %s that its instance is named: %w", claim.Name, err)
	}
	return nil
}

func (n *Nodes) learn(node *corev1.Node, claim *v1.NodeClaim) {
	memory, ok := node.Status.Capacity[corev1.ResourceMemory]
	if ok && claim.Status.ImageID != "" {
		n.Memory.Learn(node.Labels[corev1.LabelInstanceTypeStable], claim.Status.ImageID, memory)
	}
}

// tag writes the names on the instance and notes on the claim that it is done.
func (n *Nodes) tag(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim) error {
	id, ok := instanceOf(node)
	if !ok {
		return nil
	}
	tags := []ec2types.Tag{{Key: new(awsv1.NodeClaimTagKey), Value: &claim.Name}, {Key: new(awsv1.EKSClusterNameTagKey),
		Value: &n.Cluster}}
	class := &awsv1.EC2NodeClass{}
	if err := n.Client.Get(ctx, types.NamespacedName{Name: claim.Spec.NodeClassRef.Name},
		class); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading which tags the user gives the instance of node %s: %w", node.Name, err)
	}
	if _, named := class.Spec.Tags[awsv1.NameTagKey]; !named {
		tags = append([]ec2types.Tag{{Key: new(awsv1.NameTagKey), Value: &node.Name}}, tags...)
	}
	_, err := n.EC2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tags})
	if fault.IsNotFound(err) {
		return nil // an instance that is gone needs no name
	}
	if err != nil {
		return fault.Explain("naming the instance of node "+node.Name, err)
	}
	return n.note(ctx, claim, awsv1.InstanceTaggedAnnotationKey, clusterTagged)
}

func refersToClass(claim *v1.NodeClaim) bool {
	ref := claim.Spec.NodeClassRef
	return ref != nil && ref.Group == awsv1.Group && ref.Kind == awsv1.Kind
}
