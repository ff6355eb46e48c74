package launch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// Prepare works out what to ask of EC2 for a claim that may be launched on the candidates, cheapest first, and makes
// sure that the launch templates for it exist.
func (p *Launcher) Prepare(ctx context.Context, class *awsv1.EC2NodeClass, claim *v1.NodeClaim,
	ranked []choose.Candidate) (*Request, error) {
	candidates := narrowCandidates(claim, ranked, p.o.Refused())
	if len(candidates) == 0 {
		_, err := choose.Available(ranked, func(cloudprovider.OfferingRef) bool { return true })
		return nil, err
	}
	tellFewTypes(ctx, claim, ranked, candidates)
	q, _, err := p.request(ctx, class, claim, candidates)
	if bad, ok := errors.AsType[*unusableError](err); ok {
		return nil, &cloudprovider.NotReadyError{NodeClass: class.Name, Message: bad.Error()}
	}
	if err != nil {
		return nil, err
	}
	return q, p.o.Templates.Ensure(ctx, q.spec.templates)
}

// request writes down what to ask of EC2 for the claim, and from which launch templates.
func (p *Launcher) request(ctx context.Context, class *awsv1.EC2NodeClass, claim *v1.NodeClaim,
	candidates []choose.Candidate) (*Request, []*template.Template, error) {
	q := &Request{claim: claim, isAbandoned: func() bool { return ctx.Err() != nil }}
	tags := p.tags(class, claim.Labels[v1.NodePoolLabelKey])
	made, err := p.templatesFor(ctx, class, candidates, tags, q)
	if err != nil {
		return nil, nil, err
	}
	if q.spec, err = newLaunchSpec(class, claim, q.candidates, made, tags); err != nil {
		return nil, nil, err
	}
	return q, made, nil
}

// fewTypes is how many types a launch should be able to choose from.
const fewTypes = 5

// tellFewTypes says so if a claim that spot would do for is launched on demand and leaves EC2 little choice.
func tellFewTypes(ctx context.Context, claim *v1.NodeClaim, ranked, candidates []choose.Candidate) {
	kinds := map[string]bool{}
	for i := range candidates {
		kinds[candidates[i].Type.Name] = true
	}
	if candidates[0].Ref().CapacityType == v1.CapacityTypeOnDemand && len(kinds) < fewTypes &&
		len(OnlyCapacityType(ranked, v1.CapacityTypeSpot)) > 0 {
		log.FromContext(ctx).V(1).Info("a claim that spot would do for is launched on demand with few types to "+
			"choose from; allow five or more",
			"NodeClaim", claim.Name, "types", len(kinds))
	}
}

// unusableError says that no launch template can be made from a class as it is.
type unusableError struct{ error }

// templatesFor fills in the launch request's candidates, each with its variant, and returns the launch template of
// each.
func (p *Launcher) templatesFor(ctx context.Context, class *awsv1.EC2NodeClass, candidates []choose.Candidate,
	tags map[string]string, q *Request) ([]*template.Template, error) {
	cluster, err := p.o.Cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding out how nodes join the cluster: %w", err)
	}
	if q.hashAnnotations, err = HashAnnotations(class, cluster); err != nil {
		return nil, err
	}
	group, err := p.o.Network.PlacementGroup(ctx, class)
	if err != nil {
		return nil, err
	}
	if group == nil && class.Spec.PlacementGroupSelector != nil {
		return nil, &unusableError{errors.New("the placement group of spec.placementGroupSelector is not there")}
	}
	labels := kubeletLabels(q.claim, candidates)
	plan := &template.Spec{Class: class, Cluster: cluster, Group: group, Labels: labels,
		Taints: template.TaintsOf(q.claim),
		Tags:   tags, UsesReservations: p.o.Catalog.ReservedCapacity}
	key, err := plan.Key()
	if err != nil {
		return nil, err
	}
	byMold := map[template.Variant]*template.Template{}
	var out []*template.Template
	for i := range candidates {
		v, ok, err := p.variantFor(ctx, class, q.claim, &candidates[i])
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		t := byMold[v]
		if t == nil && len(byMold) == mostTemplates {
			continue
		}
		if t == nil {
			if t, err = p.o.Templates.Cached(key, plan, v); err != nil {
				return nil, &unusableError{err}
			}
			p.o.Metrics.NoteUserData(class.Name, t.Data.UserData)
			byMold[v] = t
		}
		q.candidates, q.variants, out = append(q.candidates, candidates[i]), append(q.variants, v), append(out, t)
	}
	if len(out) == 0 {
		return nil, &unusableError{errors.New("no AMI of it boots on the instance types that the claim allows; add " +
			"one to spec.amiSelectorTerms")}
	}
	return out, nil
}

// variantFor is template.VariantOf, with what the class computes for the type.
func (p *Launcher) variantFor(ctx context.Context, class *awsv1.EC2NodeClass, claim *v1.NodeClaim,
	c *choose.Candidate) (template.Variant, bool, error) {
	v, ok := template.VariantOf(class, claim, c)
	if !ok {
		return v, false, nil
	}
	k, err := p.o.Catalog.KubeletReserve(ctx, class, c.Type.Name)
	if err != nil {
		return v, false, err
	}
	return v, true, v.SetReserved(k)
}

// kubeletLabels are the labels that the kubelet gives its node: the claim's, but for those that follow from the type or
// the offering. The node gets all of them when it registers; here each would need a launch template of its own.
func kubeletLabels(claim *v1.NodeClaim, candidates []choose.Candidate) map[string]string {
	out := map[string]string{}
	for key, value := range claim.Labels {
		if !slices.ContainsFunc(candidates, func(c choose.Candidate) bool {
			_, typed := c.Type.Labels[key]
			_, offered := c.Offering.Labels[key]
			return typed || offered
		}) {
			out[key] = value
		}
	}
	out[v1.CapacityTypeLabelKey] = candidates[0].Ref().CapacityType
	if class := claim.Spec.NodeClassRef; class != nil {
		out[awsv1.NodeClassLabelKey] = class.Name
	}
	return out
}

// tags are those of everything that is made in EC2 for the pool's nodes.
func (p *Launcher) tags(class *awsv1.EC2NodeClass, pool string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, class.Spec.Tags)
	out[awsv1.ClusterTagPrefix+p.o.ClusterName] = "owned"
	out[awsv1.EKSClusterNameTagKey] = p.o.ClusterName
	out[awsv1.NodePoolTagKey] = pool
	out[awsv1.NodeClassTagKey] = class.Name
	return out
}

// HashAnnotations are the annotations that say from which version of the class an instance was launched. The hash is
// that of the class as it is here: its own annotation may be about to change.
func HashAnnotations(class *awsv1.EC2NodeClass, cluster family.Cluster) (map[string]string, error) {
	hash, err := class.Hash(cluster.CABundle)
	if err != nil {
		return nil, err
	}
	out := map[string]string{awsv1.HashAnnotationKey: hash, awsv1.HashVersionAnnotationKey: awsv1.HashVersion}
	if class.Status.InstanceProfile != "" {
		out[awsv1.InstanceProfileAnnotationKey] = class.Status.InstanceProfile
	}
	return out, nil
}
