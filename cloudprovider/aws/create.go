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

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// Create implements cloudprovider.Provider. Calls for the same claim at the same time are one call.
func (p *Provider) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, first := p.flights.join(claim.UID)
		if first {
			instance, err := p.create(ctx, claim)
			p.flights.end(claim.UID, f, instance, err)
			return instance, err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if f.err == nil {
			return copyInstance(f.instance), nil
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
		if err := p.landed(ctx, claim.UID); err != nil {
			return nil, err
		}
		there, b, err := p.approach(ctx, claim)
		switch {
		case errors.Is(err, errHidden):
			p.pause(ctx, lookAgain)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue
		case there != nil || err != nil:
			return there, err
		}
		got, err := p.launches.Ask(ctx, b.order.Key, b)
		if !errors.Is(err, errElsewhere) {
			return got, err
		}
	}
}

// approach finds the claim's instance if it has one, else it works out what to ask of EC2.
func (p *Provider) approach(ctx context.Context, claim *v1.NodeClaim) (there *cloudprovider.Instance, b *buyer, err error) {
	p.coming.Add(1)
	defer p.coming.Add(-1)
	if there, err = p.existing(ctx, claim); there != nil || err != nil {
		return there, nil, err
	}
	b, err = p.prepare(ctx, claim)
	return nil, b, err
}

// existing finds the claim's instance if it has one. It asks EC2 only while a process before this one may have launched it.
func (p *Provider) existing(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	h := p.register.recall(claim)
	if h == nil {
		var err error
		if h, err = p.inherited(ctx, claim); h == nil || err != nil {
			return nil, err
		}
	}
	there, err := p.present(ctx, h)
	switch {
	case cloudprovider.IsNotFound(err):
		return nil, nil // it has ended before anybody learnt of it
	case err == nil && there.Terminating:
		p.register.leave(h.id, p.now())
		return nil, nil // it is about to: no good to the claim
	}
	return there, err
}

// prepare works out what to ask of EC2 for the claim, and makes sure that the launch templates for it exist.
func (p *Provider) prepare(ctx context.Context, claim *v1.NodeClaim) (*buyer, error) {
	class, err := p.readyClass(ctx, claim.Spec.NodeClassRef)
	if err != nil {
		return nil, err
	}
	shelf, err := p.catalog.of(ctx, class)
	if err != nil {
		return nil, err
	}
	ranked := shelf.list.Ranked(claim)
	candidates := narrow(claim, ranked, p.refused())
	if len(candidates) == 0 {
		_, err := choose.Available(ranked, func(cloudprovider.OfferingRef) bool { return true })
		return nil, err
	}
	tellFewTypes(ctx, claim, ranked, candidates)
	b := &buyer{claim: claim, gone: func() bool { return ctx.Err() != nil }}
	tags := p.tags(class, claim.Labels[v1.NodePoolLabelKey])
	made, err := p.templatesFor(ctx, class, candidates, tags, b)
	if bad, ok := errors.AsType[*unusableError](err); ok {
		return nil, &cloudprovider.NotReadyError{NodeClass: class.Name, Message: bad.Error()}
	}
	if err != nil {
		return nil, err
	}
	if b.order, err = newOrder(class, claim, b.candidates, made, tags); err != nil {
		return nil, err
	}
	return b, p.templates.ensure(ctx, b.order.templates)
}

// fewTypes is how many types a launch should be able to choose from.
const fewTypes = 5

// tellFewTypes says so if a claim that spot would do for is launched on demand and leaves EC2 little choice.
func tellFewTypes(ctx context.Context, claim *v1.NodeClaim, ranked, candidates []choose.Candidate) {
	kinds := map[string]bool{}
	for i := range candidates {
		kinds[candidates[i].Type.Name] = true
	}
	if capacityTypeOf(&candidates[0]) == v1.CapacityTypeOnDemand && len(kinds) < fewTypes && len(onlyCapacityType(ranked, v1.CapacityTypeSpot)) > 0 {
		log.FromContext(ctx).V(1).Info("a claim that spot would do for is launched on demand with few types to choose from; allow five or more",
			"NodeClaim", claim.Name, "types", len(kinds))
	}
}

// unusableError says that no launch template can be made from a class as it is.
type unusableError struct{ error }

// templatesFor fills in the buyer's candidates, each with its mold, and returns the launch template of each.
func (p *Provider) templatesFor(ctx context.Context, class *awsv1.EC2NodeClass, candidates []choose.Candidate, tags map[string]string, b *buyer) ([]*template, error) {
	cluster, err := p.cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding out how nodes join the cluster: %w", err)
	}
	if b.stamps, err = stamps(class, cluster); err != nil {
		return nil, err
	}
	group, err := p.network.PlacementGroup(ctx, class)
	if err != nil {
		return nil, err
	}
	if group == nil && class.Spec.PlacementGroupSelector != nil {
		return nil, &unusableError{errors.New("the placement group of spec.placementGroupSelector is not there")}
	}
	labels := bootLabels(b.claim, candidates)
	plan := &blueprint{class: class, cluster: cluster, group: group, labels: labels, taints: taintsOf(b.claim), tags: tags, reserving: p.catalog.reserved}
	key, err := plan.key()
	if err != nil {
		return nil, err
	}
	byMold := map[mold]*template{}
	var out []*template
	for i := range candidates {
		m, ok, err := p.mold(ctx, class, b.claim, &candidates[i])
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		t := byMold[m]
		if t == nil && len(byMold) == mostTemplates {
			continue
		}
		if t == nil {
			if t, err = p.templates.drawn(key, plan, m); err != nil {
				return nil, &unusableError{err}
			}
			p.stats.gave(class.Name, t)
			byMold[m] = t
		}
		b.candidates, b.molds, out = append(b.candidates, candidates[i]), append(b.molds, m), append(out, t)
	}
	if len(out) == 0 {
		return nil, &unusableError{errors.New("no AMI of it boots on the instance types that the claim allows; add one to spec.amiSelectorTerms")}
	}
	return out, nil
}

// mold is moldOf, with what the class computes for the type.
func (p *Provider) mold(ctx context.Context, class *awsv1.EC2NodeClass, claim *v1.NodeClaim, c *choose.Candidate) (mold, bool, error) {
	m, ok := moldOf(class, claim, c)
	if !ok {
		return m, false, nil
	}
	k, err := p.catalog.kept(ctx, class, c.Type.Name)
	if err != nil {
		return m, false, err
	}
	return m, true, m.keep(k)
}

// bootLabels are the labels that the kubelet gives its node: the claim's, but for those that follow from the type or the
// offering. The node gets all of them when it registers; here each would need a launch template of its own.
func bootLabels(claim *v1.NodeClaim, candidates []choose.Candidate) map[string]string {
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
	out[v1.CapacityTypeLabelKey] = capacityTypeOf(&candidates[0])
	if class := claim.Spec.NodeClassRef; class != nil {
		out[awsv1.NodeClassLabelKey] = class.Name
	}
	return out
}

// tags are those of everything that is made in EC2 for the pool's nodes.
func (p *Provider) tags(class *awsv1.EC2NodeClass, pool string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, class.Spec.Tags)
	out[awsv1.ClusterTagPrefix+p.name] = "owned"
	out[awsv1.EKSClusterNameTagKey] = p.name
	out[awsv1.NodePoolTagKey] = pool
	out[awsv1.NodeClassTagKey] = class.Name
	return out
}

// stamps are the annotations that say from which version of the class an instance was launched. The hash is that of the
// class as it is here: its own annotation may be about to change.
func stamps(class *awsv1.EC2NodeClass, cluster Cluster) (map[string]string, error) {
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

// flights are the Create calls under way, by claim.
type flights struct {
	mu   sync.Mutex
	open map[types.UID]*flight
}

type flight struct {
	done     chan struct{}
	instance *cloudprovider.Instance
	err      error
}

// join returns the call for the claim that is under way, or begins one.
func (f *flights) join(uid types.UID) (of *flight, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if have := f.open[uid]; have != nil {
		return have, false
	}
	if f.open == nil {
		f.open = map[types.UID]*flight{}
	}
	of = &flight{done: make(chan struct{})}
	f.open[uid] = of
	return of, true
}

func (f *flights) end(uid types.UID, of *flight, instance *cloudprovider.Instance, err error) {
	if instance != nil {
		of.instance = copyInstance(instance)
	}
	of.err = err
	f.mu.Lock()
	delete(f.open, uid)
	f.mu.Unlock()
	close(of.done)
}
