package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// Create implements cloudprovider.Provider. Calls for the same claim at the same time are one call.
func (p *Provider) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, first := p.createCalls.join(claim.UID)
		if first {
			instance, err := p.create(ctx, claim)
			p.createCalls.end(claim.UID, f, instance, err)
			return instance, err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if f.err == nil {
			return f.instance.DeepCopy(), nil
		}
		if !errors.Is(f.err, context.Canceled) && !errors.Is(f.err, context.DeadlineExceeded) {
			return nil, f.err
		}
		// Whoever was first has given up; that is no answer for us.
	}
}

func (p *Provider) create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	for {
		// It may be being launched, or a launch's answer was lost.
		if err := p.awaitLaunch(ctx, claim.UID); err != nil {
			return nil, err
		}
		there, q, err := p.findOrPrepare(ctx, claim)
		switch {
		case errors.Is(err, ownership.ErrMayBeHidden):
			p.pause(ctx, ownership.ScanAgainAfter)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue
		case there != nil || err != nil:
			return there, err
		}
		got, err := p.launches.Ask(ctx, q.spec.Key, q)
		if !errors.Is(err, errLaunchedElsewhere) {
			return got, err
		}
	}
}

// findOrPrepare finds the claim's instance if it has one, else it works out what to ask of EC2.
func (p *Provider) findOrPrepare(ctx context.Context, claim *v1.NodeClaim) (there *cloudprovider.Instance,
	q *launchRequest, err error) {
	p.comingLaunches.Add(1)
	defer p.comingLaunches.Add(-1)
	if there, err = p.existing(ctx, claim); there != nil || err != nil {
		return there, nil, err
	}
	q, err = p.prepare(ctx, claim)
	return nil, q, err
}

// existing finds the claim's instance if it has one. It asks EC2 only while a process before this one may have launched
// it.
func (p *Provider) existing(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	a := p.register.RecallInstance(claim)
	if a == nil {
		var err error
		if a, err = p.instances.FromPredecessor(ctx, claim); a == nil || err != nil {
			return nil, err
		}
	}
	there, err := p.describeAssigned(ctx, a)
	switch {
	case cloudprovider.IsNotFound(err):
		return nil, nil // it has ended before anybody learnt of it
	case err == nil && there.Terminating:
		p.register.LeaveClaim(a.ID, p.now())
		return nil, nil // it is about to: no good to the claim
	}
	return there, err
}

// prepare works out what to ask of EC2 for the claim, and makes sure that the launch templates for it exist.
func (p *Provider) prepare(ctx context.Context, claim *v1.NodeClaim) (*launchRequest, error) {
	class, err := p.readyClass(ctx, claim.Spec.NodeClassRef)
	if err != nil {
		return nil, err
	}
	c, err := p.catalog.ForClass(ctx, class)
	if err != nil {
		return nil, err
	}
	ranked := c.List.Ranked(claim)
	candidates := narrowCandidates(claim, ranked, p.refused())
	if len(candidates) == 0 {
		_, err := choose.Available(ranked, func(cloudprovider.OfferingRef) bool { return true })
		return nil, err
	}
	tellFewTypes(ctx, claim, ranked, candidates)
	q := &launchRequest{claim: claim, isAbandoned: func() bool { return ctx.Err() != nil }}
	tags := p.tags(class, claim.Labels[v1.NodePoolLabelKey])
	made, err := p.templatesFor(ctx, class, candidates, tags, q)
	if bad, ok := errors.AsType[*unusableError](err); ok {
		return nil, &cloudprovider.NotReadyError{NodeClass: class.Name, Message: bad.Error()}
	}
	if err != nil {
		return nil, err
	}
	if q.spec, err = newLaunchSpec(class, claim, q.candidates, made, tags); err != nil {
		return nil, err
	}
	return q, p.templates.Ensure(ctx, q.spec.templates)
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
		len(onlyCapacityType(ranked, v1.CapacityTypeSpot)) > 0 {
		log.FromContext(ctx).V(1).Info("a claim that spot would do for is launched on demand with few types to "+
			"choose from; allow five or more",
			"NodeClaim", claim.Name, "types", len(kinds))
	}
}

// unusableError says that no launch template can be made from a class as it is.
type unusableError struct{ error }

// templatesFor fills in the launch request's candidates, each with its variant, and returns the launch template of
// each.
func (p *Provider) templatesFor(ctx context.Context, class *awsv1.EC2NodeClass, candidates []choose.Candidate,
	tags map[string]string, q *launchRequest) ([]*template.Template, error) {
	cluster, err := p.cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding out how nodes join the cluster: %w", err)
	}
	if q.hashAnnotations, err = hashAnnotations(class, cluster); err != nil {
		return nil, err
	}
	group, err := p.network.PlacementGroup(ctx, class)
	if err != nil {
		return nil, err
	}
	if group == nil && class.Spec.PlacementGroupSelector != nil {
		return nil, &unusableError{errors.New("the placement group of spec.placementGroupSelector is not there")}
	}
	labels := kubeletLabels(q.claim, candidates)
	plan := &template.Spec{Class: class, Cluster: cluster, Group: group, Labels: labels,
		Taints: template.TaintsOf(q.claim),
		Tags:   tags, UsesReservations: p.catalog.ReservedCapacity}
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
			if t, err = p.templates.Cached(key, plan, v); err != nil {
				return nil, &unusableError{err}
			}
			p.metrics.NoteUserData(class.Name, t.Data.UserData)
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
func (p *Provider) variantFor(ctx context.Context, class *awsv1.EC2NodeClass, claim *v1.NodeClaim,
	c *choose.Candidate) (template.Variant, bool, error) {
	v, ok := template.VariantOf(class, claim, c)
	if !ok {
		return v, false, nil
	}
	k, err := p.catalog.KubeletReserve(ctx, class, c.Type.Name)
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
func (p *Provider) tags(class *awsv1.EC2NodeClass, pool string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, class.Spec.Tags)
	out[awsv1.ClusterTagPrefix+p.clusterName] = "owned"
	out[awsv1.EKSClusterNameTagKey] = p.clusterName
	out[awsv1.NodePoolTagKey] = pool
	out[awsv1.NodeClassTagKey] = class.Name
	return out
}

// hashAnnotations are the annotations that say from which version of the class an instance was launched. The hash is
// that of the class as it is here: its own annotation may be about to change.
func hashAnnotations(class *awsv1.EC2NodeClass, cluster family.Cluster) (map[string]string, error) {
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

// createCalls are the Create calls under way, by claim.
type createCalls struct {
	mu    sync.Mutex
	calls map[types.UID]*createCall
}

type createCall struct {
	done     chan struct{}
	instance *cloudprovider.Instance
	err      error
}

// join returns the call for the claim that is under way, or begins one.
func (f *createCalls) join(uid types.UID) (of *createCall, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if have := f.calls[uid]; have != nil {
		return have, false
	}
	if f.calls == nil {
		f.calls = map[types.UID]*createCall{}
	}
	of = &createCall{done: make(chan struct{})}
	f.calls[uid] = of
	return of, true
}

func (f *createCalls) end(uid types.UID, of *createCall, instance *cloudprovider.Instance, err error) {
	if instance != nil {
		of.instance = instance.DeepCopy()
	}
	of.err = err
	f.mu.Lock()
	delete(f.calls, uid)
	f.mu.Unlock()
	close(of.done)
}
