package refresh_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
	"github.com/tenon-sh/tenon/cloudprovider/aws/refresh"
)

// heard are events: what each is about, its type, its reason and its text.
type heard []string

func (h *heard) Eventf(about, _ runtime.Object, kind, reason, _, note string, args ...any) {
	ref := about.(*corev1.ObjectReference)
	*h = append(*h, fmt.Sprintf("%s/%s %s %s: %s", ref.Kind, ref.Name, kind, reason, fmt.Sprintf(note, args...)))
}

// poolOf is a pool of a class that may use what the requirements allow.
func poolOf(name, group, class string, requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodePool {
	p := &v1.NodePool{}
	p.Name = name
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: group, Kind: awsv1.Kind, Name: class}
	p.Spec.Template.Spec.Requirements = requirements
	return p
}

// TestPoolsHearOfZonalShifts: each pool that may use the zone, once, by whoever leads, and again when it is over.
func TestPoolsHearOfZonalShifts(t *testing.T) {
	a, config := simtest.Start(t, account.Options{ZonalShift: true})
	shifted, other := a.World.Zones()[0], a.World.Zones()[1]
	class := &awsv1.EC2NodeClass{}
	class.Name = "default"
	class.Status.Subnets = []awsv1.Subnet{
		{ID: "subnet-1", Zone: shifted.Name, ZoneID: shifted.ID}, {ID: "subnet-2", Zone: other.Name, ZoneID: other.ID},
		{ID: "subnet-3", Zone: shifted.Name, ZoneID: shifted.ID},
	}
	zoned := func(key string, op corev1.NodeSelectorOperator,
		values ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: op, Values: values}
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), awsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	var broken, leads atomic.Bool
	byID := zoned(awsv1.ZoneIDLabelKey, corev1.NodeSelectorOpIn, shifted.ID)
	notThere := zoned(corev1.LabelTopologyZone, corev1.NodeSelectorOpNotIn, shifted.Name)
	list := func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if broken.Load() {
			return errors.New("no answer")
		}
		return c.List(ctx, list, opts...)
	}
	kube := clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(class,
		poolOf("any", awsv1.Group, "default"), poolOf("by-id", awsv1.Group, "default", byID),
		poolOf("elsewhere", awsv1.Group, "default", notThere), poolOf("without-class", awsv1.Group, "missing"),
		poolOf("anothers", "eks.amazonaws.com", "default"),
	).WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()

	clock, events := simtest.NewClock(), &heard{}
	s := &refresh.Shifts{
		API: arczonalshift.NewFromConfig(config), After: clock.After,
		Cluster: func(context.Context) (string, error) { return a.EKS.ARN("lab"), nil },
		News:    &refresh.ShiftNews{Client: kube, Events: events, Leads: leads.Load},
	}
	run(t, s.Start)
	clock.AwaitWaiters(1)
	pass := func(when string, want ...string) {
		t.Helper()
		*events = nil
		clock.Advance(30 * time.Second)
		clock.AwaitWaiters(1)
		if !slices.Equal(*events, want) {
			t.Errorf("%s: the events %q, want %q", when, *events, want)
		}
	}
	text := func(pool, kind, reason, format string) string {
		return fmt.Sprintf("NodePool/%s %s %s: %s", pool, kind, reason, fmt.Sprintf(format, shifted.Name, shifted.ID))
	}
	active := func(pool string) string {
		return text(pool, "Warning", "ZonalShiftActive",
			"A zonal shift has left zone %s (%s): no node is launched there until it ends")
	}
	cleared := func(pool string) string {
		return text(pool, "Normal", "ZonalShiftCleared",
			"The zonal shift from zone %s (%s) has ended: nodes are launched there again")
	}
	if err := a.Shifts.Shift(shifted.ID, time.Hour, false); err != nil {
		t.Fatal(err)
	}
	pass("another replica leads")
	leads.Store(true)
	broken.Store(true)
	pass("pools can't be listed")
	broken.Store(false)
	pass("it leads", active("any"), active("by-id"))
	pass("nothing is new")
	a.Shifts.Cancel(shifted.ID)
	pass("it is over", cleared("any"), cleared("by-id"))
}
