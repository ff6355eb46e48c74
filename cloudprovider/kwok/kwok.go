// Package kwok is a simulated cloud: it sells the catalog's instances, runs them as records in the Kubernetes API, and
// lets each of them join the cluster as a Node whose kubelet is played by kwok.
//
// It is an edge and a public one: it speaks cloudprovider's words and the API types, and touches the Kubernetes API
// only. An instance is a ConfigMap, not the Node: the cloud must outlive the controller that started it, an instance
// exists before its Node joins and after somebody deletes the Node by hand, and the ConfigMap's name, which derives
// from the claim's UID, is what makes a launch happen once. Nodes that Karpenter's own kwok provider launched are
// instances without a record.
package kwok

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// API is what the cloud needs of Kubernetes. It must ask the API server and not a cache: an instance that was just
// launched has to be found.
type API interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
	Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error
}

// Options say how a Provider works.
type Options struct {
	// API is required.
	API API
	// NodeClasses reads KWOKNodeClasses and may be a cache; API is used if it is nil.
	NodeClasses client.Reader
	// Types is what the cloud sells, ordered by name; package catalog has some. Required.
	Types []*cloudprovider.InstanceType
	// Namespace holds the instances' records; kube-system if it is empty.
	Namespace string
	// Faults are what goes wrong; nothing but what annotations of the NodeClass say if it is nil.
	Faults *Faults
}

// Provider is the simulated cloud. It keeps nothing that a restart would lose. Its Start method lets instances join.
type Provider struct {
	records records
	nodes   nodes
	// karpenter has the instances that Karpenter's provider launched, before this one took the cluster over.
	karpenter karpenterNodes
	boots     *boots
	classes   client.Reader
	types     []*cloudprovider.InstanceType
	faults    *Faults
}

var _ cloudprovider.Provider = (*Provider)(nil)

// New returns a provider. Instances join the cluster only while Start runs, which a manager does.
func New(o Options) (*Provider, error) {
	if o.API == nil {
		return nil, fmt.Errorf("making a kwok provider: Options.API is missing")
	}
	if len(o.Types) == 0 {
		return nil, fmt.Errorf("making a kwok provider: Options.Types is empty; use catalog.Default")
	}
	if o.Namespace == "" {
		o.Namespace = "kube-system"
	}
	if o.NodeClasses == nil {
		o.NodeClasses = o.API
	}
	if o.Faults == nil {
		o.Faults = &Faults{}
	}
	p := &Provider{
		records:   records{api: o.API, namespace: o.Namespace},
		nodes:     nodes{api: o.API},
		karpenter: karpenterNodes{api: o.API},
		classes:   o.NodeClasses,
		types:     o.Types,
		faults:    o.Faults,
	}
	p.boots = newBoots(p.join)
	return p, nil
}

// Name implements cloudprovider.Provider.
func (p *Provider) Name() string { return "kwok" }

// NodeClasses implements cloudprovider.Provider.
func (p *Provider) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{kwokv1alpha1.GroupVersion().WithKind(kwokv1alpha1.Kind)}
}

// InstanceTypes implements cloudprovider.Provider: every pool may buy the whole catalog.
func (p *Provider) InstanceTypes(_ context.Context, _ *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return p.types, nil
}

// UnhealthyCondition is for tests of repair: whoever puts it on a node has the node replaced after half a minute. No
// kubelet takes it away, and the node stays Ready, so that its pods leave as they would on a node that works.
const UnhealthyCondition corev1.NodeConditionType = "KWOKUnhealthy"

// RepairPolicies implements cloudprovider.Provider.
func (p *Provider) RepairPolicies() []cloudprovider.RepairPolicy {
	atOnce, soon := time.Duration(0), 45*time.Second
	return []cloudprovider.RepairPolicy{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Toleration: 10 * time.Minute,
			TerminationGracePeriod: &atOnce},
		{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: 10 * time.Minute,
			TerminationGracePeriod: &atOnce},
		{Type: UnhealthyCondition, Status: corev1.ConditionTrue, Toleration: 30 * time.Second,
			TerminationGracePeriod: &soon},
	}
}

// Drifted implements cloudprovider.Provider. A KWOKNodeClass has no setting that a running instance could miss, so
// instances drift only if a fault says so: those that were launched before it did. What replaces them has not drifted.
func (p *Provider) Drifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	class, err := p.nodeClass(ctx, claim.Spec.NodeClassRef)
	if cloudprovider.IsNotReady(err) {
		return "", nil // a class that can't be used now says nothing about instances that run
	}
	if err != nil {
		return "", err
	}
	faults, err := p.faultsOf(class)
	if err != nil || faults.Drift == "" {
		return "", err
	}
	r, err := p.records.get(ctx, providerIDPrefix+instanceName(claim.Name, string(claim.UID)))
	if cloudprovider.IsNotFound(err) {
		if _, err := p.karpenter.get(ctx, claim.Status.ProviderID); err != nil {
			return "", err
		}
		return faults.Drift, nil // Karpenter launched it, which knows no faults
	}
	if err != nil || r.Drift == faults.Drift {
		return "", err
	}
	return faults.Drift, nil
}

// nodeClass returns the class if it can be used.
func (p *Provider) nodeClass(ctx context.Context, ref *v1.NodeClassReference) (*kwokv1alpha1.KWOKNodeClass, error) {
	if ref == nil || ref.Group != kwokv1alpha1.Group || ref.Kind != kwokv1alpha1.Kind {
		return nil, &cloudprovider.NotReadyError{Message: fmt.Sprintf(
			"spec.nodeClassRef must have group %s and kind %s", kwokv1alpha1.Group, kwokv1alpha1.Kind)}
	}
	class := &kwokv1alpha1.KWOKNodeClass{}
	err := p.classes.Get(ctx, types.NamespacedName{Name: ref.Name}, class)
	if apierrors.IsNotFound(err) {
		return nil, &cloudprovider.NotReadyError{NodeClass: ref.Name, Message: "it does not exist; create it or " +
			"change spec.nodeClassRef.name"}
	}
	if err != nil {
		return nil, cloudError("getting NodeClass "+ref.Name, err)
	}
	if !class.DeletionTimestamp.IsZero() {
		return nil, &cloudprovider.NotReadyError{NodeClass: ref.Name, Message: "it is being deleted"}
	}
	ready := meta.FindStatusCondition(class.Status.Conditions, v1.ConditionTypeReady)
	if ready == nil {
		return nil, &cloudprovider.NotReadyError{NodeClass: ref.Name, Message: "it has no Ready condition yet"}
	}
	if ready.Status != "True" {
		return nil, &cloudprovider.NotReadyError{NodeClass: ref.Name, Message: ready.Message}
	}
	return class, nil
}

// faultsOf joins the faults of the program with those of the class's annotations.
func (p *Provider) faultsOf(class *kwokv1alpha1.KWOKNodeClass) (FaultSet, error) {
	annotated, err := ParseFaults(class.Annotations)
	if err != nil {
		return FaultSet{}, &cloudprovider.NotReadyError{NodeClass: class.Name, Message: err.Error()}
	}
	return p.faults.Get().with(annotated), nil
}

// cloudError puts an error of the Kubernetes API into the words of a cloud.
func cloudError(doing string, err error) error {
	err = fmt.Errorf("%s: %w", doing, err)
	switch {
	case apierrors.IsTooManyRequests(err):
		return &cloudprovider.ThrottledError{Cause: err}
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return &cloudprovider.UnauthorizedError{Cause: err}
	default:
		return err
	}
}
