package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider/aws/launch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// rehearsalPool stands for a pool's name where a class has none: permissions are often bound to the tag.
const rehearsalPool = "rehearsal"

var _ nodeclass.Rehearser = (*Provider)(nil)

// Rehearse implements nodeclass.Rehearser: the calls with which an instance of the class is launched, as dry runs. The
// class need not be ready; what it has found so far is used. There are no calls if nothing that the class could use is
// sold: that may be otherwise tomorrow, and says nothing about the class.
func (p *Provider) Rehearse(ctx context.Context, class *awsv1.EC2NodeClass) ([]nodeclass.Call, error) {
	if _, err := p.o.Cluster(ctx); err != nil {
		return nil, &nodeclass.PassingError{Cause: err}
	}
	claim, candidate, err := p.rehearsalClaim(ctx, class)
	if unsold, ok := errors.AsType[*offer.UnsoldError](err); ok {
		log.FromContext(ctx).Info("no launch can be rehearsed", "EC2NodeClass", class.Name, "why", unsold.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.launcher.DryRuns(ctx, class, claim, candidate)
}

// rehearsalClaim is a claim as one of the class's pools would make it, and what it would be launched on. Policies often
// deny what no pool uses, so types are taken from the pools; from all that the class can use only if there is no pool,
// or none that could launch anything.
func (p *Provider) rehearsalClaim(ctx context.Context, class *awsv1.EC2NodeClass) (*v1.NodeClaim,
	choose.Candidate, error) {
	sold, err := p.catalog.ForClass(ctx, class)
	if err != nil {
		return nil, choose.Candidate{}, err
	}
	pools, err := poolsOf(ctx, p.o.Claims, class.Name)
	if err != nil {
		return nil, choose.Candidate{}, err
	}
	anything := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: rehearsalPool}}
	for _, some := range [][]*v1.NodePool{pools, {anything}} {
		// A launch on demand is rehearsed, whichever way the pool buys, if anything is sold like that.
		for _, terms := range []string{v1.CapacityTypeOnDemand, v1.CapacityTypeReserved, v1.CapacityTypeSpot} {
			for _, pool := range some {
				claim := rehearsalOf(class, pool)
				// Whether it can be had now is not asked: it would be too late to learn that a launch fails when it
				// can.
				if fit := launch.DropExotic(launch.OnlyCapacityType(sold.List.Ranked(claim), terms)); len(fit) > 0 {
					return claim, fit[0], nil
				}
			}
		}
	}
	return nil, choose.Candidate{}, p.catalog.NoneFits(ctx, class)
}

// rehearsalOf is a claim of the pool that may be launched on any terms.
func rehearsalOf(class *awsv1.EC2NodeClass, pool *v1.NodePool) *v1.NodeClaim {
	claim := &v1.NodeClaim{}
	claim.Name, claim.UID = "rehearsal", class.UID
	claim.Labels = map[string]string{v1.NodePoolLabelKey: pool.Name}
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: class.Name}
	claim.Spec.Requirements = slices.DeleteFunc(slices.Clone(pool.Spec.Template.Spec.Requirements),
		func(r v1.NodeSelectorRequirementWithMinValues) bool {
			return r.Key == v1.CapacityTypeLabelKey
		})
	return claim
}

// poolsOf lists the pools that refer to the class, by name. They are read as plain trees from the API server, seldom: a
// watch of their own would keep them twice, and one that can't be read must not hide the others.
func poolsOf(ctx context.Context, live client.Reader, class string) ([]*v1.NodePool, error) {
	if live == nil {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePoolList"))
	if err := live.List(ctx, list); err != nil {
		return nil, &nodeclass.PassingError{Cause: fmt.Errorf("listing the NodePools of EC2NodeClass %s: %w",
			class, err)}
	}
	var out []*v1.NodePool
	for i := range list.Items {
		pool := &v1.NodePool{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, pool); err != nil {
			continue
		}
		if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil && ref.Group == awsv1.Group &&
			ref.Kind == awsv1.Kind && ref.Name == class {
			out = append(out, pool)
		}
	}
	slices.SortFunc(out, func(a, b *v1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
