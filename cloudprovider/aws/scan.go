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
	// visibleWithin is how long after a launch EC2 may not show an instance yet.
	visibleWithin = time.Minute
	// settledAfter is after how long a look at the instances shows whatever a process before this one has launched.
	settledAfter = 10 * time.Second
	// recentFor is how old a look may be that questions without haste are answered from.
	recentFor = time.Minute
	// A look is shared by all who ask at about the same time.
	scanIdle  = 10 * time.Millisecond
	scanMax   = 100 * time.Millisecond
	scanLimit = time.Minute
	pageSize  = 1000
)

// instanceScan is a look at all instances of the cluster.
type instanceScan struct {
	began     time.Time
	instances []ec2types.Instance
	byID      map[string]*ec2types.Instance
}

// scanState keeps the last view and what it is good for.
type scanState struct {
	mu sync.Mutex
	// firstWanted is when somebody first wanted to launch; complete is set once a view was begun long enough after
	// that: then no process but this one can have launched what the register does not know.
	firstWanted time.Time
	complete    bool
	last        *instanceScan
}

// begin notes that somebody wants to launch and reports whether the register is known to be complete.
func (s *scanState) begin(now time.Time) (sure bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.firstWanted.IsZero() {
		s.firstWanted = now
	}
	return s.complete
}

func (s *scanState) noteScan(v *instanceScan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || v.began.After(s.last.began) {
		s.last = v
	}
	if !s.firstWanted.IsZero() && !v.began.Before(s.firstWanted.Add(settledAfter)) {
		s.complete = true
	}
}

// isSettled tells whether what a process before this one has launched can be seen by now.
func (s *scanState) isSettled(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete || !s.firstWanted.IsZero() && !now.Before(s.firstWanted.Add(settledAfter))
}

func (s *scanState) isComplete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete
}

func (s *scanState) recent(now time.Time) *instanceScan {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && now.Sub(s.last.began) > recentFor {
		s.last = nil
	}
	return s.last
}

// newScanGatherer returns what gathers those who want to look.
func (p *Provider) newScanGatherer() *batch.Gatherer[struct{}, struct{}, *instanceScan] {
	window := batch.Window{Idle: scanIdle, Max: scanMax, Items: 1000}
	return batch.New(func(struct{}) batch.Window {
		return window
	}, scanLimit, func(ctx context.Context, _ struct{}, all []struct{}) []batch.Answer[*instanceScan] {
		v, err := p.scanAll(ctx)
		out := make([]batch.Answer[*instanceScan], len(all))
		for i := range out {
			out[i] = batch.Answer[*instanceScan]{Value: v, Err: err}
		}
		return out
	})
}

// scan looks at all instances and finds out whose they are.
func (p *Provider) scan(ctx context.Context) (*instanceScan, error) {
	return p.scanGatherer.Ask(ctx, struct{}{}, struct{}{})
}

// scanBeforeLaunch takes a survey for somebody who is about to launch, and reports whether it shows all that there can
// be.
func (p *Provider) scanBeforeLaunch(ctx context.Context) bool {
	_, err := p.scan(ctx)
	return err == nil && p.scans.isComplete()
}

func (p *Provider) scanAll(ctx context.Context) (*instanceScan, error) {
	v := &instanceScan{began: p.now(), byID: map[string]*ec2types.Instance{}}
	pages := ec2.NewDescribeInstancesPaginator(p.ec2, &ec2.DescribeInstancesInput{
		Filters: []ec2types.Filter{
			{Name: new("tag:" + awsv1.ClusterTagPrefix + p.clusterName), Values: []string{"owned"}},
			{Name: new("tag-key"), Values: []string{awsv1.NodePoolTagKey}},
			{Name: new("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped",
				"shutting-down"}},
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
	if err := p.ownership.resolveOwners(ctx, v.instances, p.liveClaims); err != nil {
		return nil, err
	}
	p.ownership.prune(shown, v.began)
	p.nameAll(v)
	p.scans.noteScan(v)
	return v, nil
}

// slim leaves out what nobody reads: thousands of instances are kept until the next look.
func slim(i ec2types.Instance) ec2types.Instance {
	i.BlockDeviceMappings, i.NetworkInterfaces, i.Licenses, i.ProductCodes = nil, nil, nil, nil
	return i
}

// nameAll has those instances named that lack the name of the claim that they were given to. Where AWS has moved
// traffic away from a zone that can wait.
func (p *Provider) nameAll(v *instanceScan) {
	for i := range v.instances {
		a := p.ownership.assignmentOf(*v.instances[i].InstanceId)
		if a != nil && !a.named && a.claim != "" && isAlive(&v.instances[i]) && p.shiftedZone(&v.instances[i]) == "" {
			p.nameTagger.add(a.id, a.claim)
		}
	}
}
