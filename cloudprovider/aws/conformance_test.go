package aws_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/conformance"
)

// TestConformance runs the suite against the simulator, over HTTP with the real SDK; once more with an EC2 that shows
// late what it has done.
func TestConformance(t *testing.T) {
	for name, timing := range map[string]cloud.Timing{"at once": {}, "late": cloud.Timing{}.Lagging()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conform(t, timing)
		})
	}
}

// conform runs the suite. A controller that comes back, and whoever finds that an instance has ended, takes longer than
// EC2 takes to show what it has done.
func conform(t *testing.T, timing cloud.Timing) {
	conformance.Run(t, conformance.Env{New: func(ctx context.Context) (*conformance.Cloud, error) {
		clock := &ahead{}
		s := setup{timing: timing, clock: clock}
		w, err := newWorld(ctx, s)
		if err != nil {
			return nil, err
		}
		p, err := w.provider()
		if err != nil {
			return nil, err
		}
		return &conformance.Cloud{
			Provider: p, Pool: pool(), NodeClass: classRef(), Close: w.close,
			Restart: func(context.Context) (cloudprovider.Provider, error) {
				clock.put(timing.Visibility)
				return w.provider()
			},
			Exhaust: w.exhaust,
			Kill: func(ctx context.Context, providerID string) error {
				clock.put(timing.Visibility)
				err := w.kill(ctx, providerID)
				clock.put(timing.StateLag)
				return err
			},
			BlockNodeClass: func(ctx context.Context) error {
				return w.changeClass(ctx, func(class *awsv1.EC2NodeClass) {
					class.Status.Conditions[0].Status, class.Status.Conditions[0].Message = metav1.ConditionFalse,
						"no subnet"
				})
			},
		}, nil
	}})
}
