package refresh

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// ZonalShiftAPI is what is asked of the Application Recovery Controller.
type ZonalShiftAPI interface {
	GetManagedResource(ctx context.Context, in *arczonalshift.GetManagedResourceInput,
		opts ...func(*arczonalshift.Options)) (*arczonalshift.GetManagedResourceOutput, error)
}

const (
	// lookAtShifts is how often is asked which zones are left.
	lookAtShifts = 30 * time.Second
	shiftLimit   = 10 * time.Second
)

// Shifts knows which zones a zonal shift of the cluster has left. It runs on every replica.
type Shifts struct {
	API ZonalShiftAPI
	// Cluster is the ARN of the cluster.
	Cluster func(ctx context.Context) (string, error)
	// Changed is called when other zones are left than before; may be nil.
	Changed func()
	// News tells people; nil to tell nobody.
	News *ShiftNews
	// Guard catches panics; nil to tell nobody of them.
	Guard *recovery.Guard
	// After tells when a time has passed; time.After if it is nil.
	After func(time.Duration) <-chan time.Time

	mu   sync.Mutex
	left map[string]bool // by zone id
}

// Away tells whether a zone, by its id, has been left. While nobody answers the last answer holds.
func (s *Shifts) Away(zoneID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left[zoneID]
}

// zonesLeft are the zones that have been left, by id. Nobody changes the map.
func (s *Shifts) zonesLeft() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// NeedLeaderElection makes a manager run it on every replica.
func (s *Shifts) NeedLeaderElection() bool { return false }

// Start looks until the context ends.
func (s *Shifts) Start(ctx context.Context) error {
	if s.After == nil {
		s.After = time.After
	}
	s.Guard.Keep(ctx, "looking for zonal shifts", s.After, s.keep)
	return nil
}

func (s *Shifts) keep(ctx context.Context) {
	failing := false
	for {
		err := s.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			log.FromContext(ctx).Error(err,
				"it is not known whether a zonal shift is active; what was known last holds")
		}
		failing = err != nil
		if err == nil && s.News != nil {
			if err := s.News.tell(ctx, s.zonesLeft()); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err,
					"an event about a zonal shift could not be told; it will be tried again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.After(lookAtShifts):
		}
	}
}

// look asks once. A zone whose weight is zero has been left, by a person or by AWS.
func (s *Shifts) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shiftLimit)
	defer cancel()
	arn, err := s.Cluster(ctx)
	if err != nil {
		return err
	}
	out, err := s.API.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: &arn})
	if err != nil {
		return fault.Explain("asking for zonal shifts of the cluster (--enable-zonal-shift)", err)
	}
	now := map[string]bool{}
	for zone, weight := range out.AppliedWeights {
		if weight == 0 {
			now[zone] = true
		}
	}
	s.mu.Lock()
	before := s.left
	s.left = now
	s.mu.Unlock()
	if !maps.Equal(before, now) {
		if s.Changed != nil {
			s.Changed()
		}
		log.FromContext(ctx).Info("a zonal shift of the cluster has changed which zones nodes are launched in", "left",
			slices.Sorted(maps.Keys(now)))
	}
	return nil
}
