package aws

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	// showsIn is how long after a launch EC2 may not show an instance yet.
	showsIn = time.Minute
	// settledIn is after how long a look at the instances shows whatever a process before this one has launched.
	settledIn = 10 * time.Second
	// fresh is how old a look may be that questions without haste are answered from.
	fresh = time.Minute
	// A look is shared by all who ask at about the same time.
	surveyIdle  = 10 * time.Millisecond
	surveyMax   = 100 * time.Millisecond
	surveyLimit = time.Minute
	pageSize    = 1000
)

// view is a look at all instances of the cluster.
type view struct {
	began     time.Time
	instances []ec2types.Instance
	byID      map[string]*ec2types.Instance
}

// looks keeps the last view and what it is good for.
type looks struct {
	mu sync.Mutex
	// first is when somebody first wanted to launch; sure is set once a view was begun long enough after that: then no
	// process but this one can have launched what the register does not know.
	first time.Time
	sure  bool
	last  *view
}

// begin notes that somebody wants to launch and reports whether the register is known to be complete.
func (l *looks) begin(now time.Time) (sure bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first.IsZero() {
		l.first = now
	}
	return l.sure
}

func (l *looks) note(v *view) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil || v.began.After(l.last.began) {
		l.last = v
	}
	if !l.first.IsZero() && !v.began.Before(l.first.Add(settledIn)) {
		l.sure = true
	}
}

// isSettled tells whether what a process before this one has launched can be seen by now.
func (l *looks) isSettled(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sure || !l.first.IsZero() && !now.Before(l.first.Add(settledIn))
}

func (l *looks) isSure() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sure
}

func (l *looks) recent(now time.Time) *view {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && now.Sub(l.last.began) > fresh {
		l.last = nil
	}
	return l.last
}

// newSurveys returns what gathers those who want to look.
func (p *Provider) newSurveys() *batch.Gatherer[struct{}, struct{}, *view] {
	window := batch.Window{Idle: surveyIdle, Max: surveyMax, Items: 1000}
	return batch.New(func(struct{}) batch.Window { return window }, surveyLimit, func(ctx context.Context, _ struct{}, all []struct{}) []batch.Answer[*view] {
		v, err := p.look(ctx)
		out := make([]batch.Answer[*view], len(all))
		for i := range out {
			out[i] = batch.Answer[*view]{Value: v, Err: err}
		}
		return out
	})
}

// survey looks at all instances and finds out whose they are.
func (p *Provider) survey(ctx context.Context) (*view, error) {
	return p.surveys.Ask(ctx, struct{}{}, struct{}{})
}

// looked takes a survey for somebody who is about to launch, and reports whether it shows all that there can be.
func (p *Provider) looked(ctx context.Context) bool {
	_, err := p.survey(ctx)
	return err == nil && p.looks.isSure()
}

func (p *Provider) look(ctx context.Context) (*view, error) {
	v := &view{began: p.now(), byID: map[string]*ec2types.Instance{}}
	pages := ec2.NewDescribeInstancesPaginator(p.ec2, &ec2.DescribeInstancesInput{
		Filters: []ec2types.Filter{
			{Name: new("tag:" + awsv1.ClusterTagPrefix + p.name), Values: []string{"owned"}},
			{Name: new("tag-key"), Values: []string{awsv1.NodePoolTagKey}},
			{Name: new("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped", "shutting-down"}},
		},
		MaxResults: new(int32(pageSize)),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fault.Explain("listing the cluster's instances", err)
		}
		for _, r := range page.Reservations {
			for i := range r.Instances {
				if r.Instances[i].InstanceId != nil && !p.isForeign(&r.Instances[i]) {
					v.instances = append(v.instances, slim(r.Instances[i]))
				}
			}
		}
	}
	shown := make(map[string]bool, len(v.instances))
	for i := range v.instances {
		id := *v.instances[i].InstanceId
		v.byID[id], shown[id] = &v.instances[i], true
	}
	if err := p.register.settle(ctx, v.instances, p.live); err != nil {
		return nil, err
	}
	p.register.prune(shown, v.began)
	p.nameAll(v)
	p.looks.note(v)
	return v, nil
}

// slim leaves out what nobody reads: thousands of instances are kept until the next look.
func slim(i ec2types.Instance) ec2types.Instance {
	i.BlockDeviceMappings, i.NetworkInterfaces, i.Licenses, i.ProductCodes = nil, nil, nil, nil
	return i
}

// nameAll has those instances named that lack the name of the claim that they were given to. Where AWS has moved traffic
// away from a zone that can wait.
func (p *Provider) nameAll(v *view) {
	for i := range v.instances {
		h := p.register.machine(*v.instances[i].InstanceId)
		if h != nil && !h.named && h.claim != "" && isAlive(&v.instances[i]) && p.shiftedZone(&v.instances[i]) == "" {
			p.names.add(h.id, h.claim)
		}
	}
}
