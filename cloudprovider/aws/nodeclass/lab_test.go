package nodeclass_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // tests make things fail on purpose
	labtest.Main(m)
}

// eventually waits for something that the controller does in its own time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("after a minute it does not hold that %s", what)
		case <-tick.C:
		}
	}
}

// runOn runs the controller of the world's account on a lab until the test ends.
func (w *world) runOn(l *labtest.Lab) {
	w.t.Helper()
	mgr, err := ctrl.NewManager(l.Config(), ctrl.Options{
		Scheme: newScheme(w.t), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // the test may run more than once in a process
	})
	if err != nil {
		w.t.Fatal(err)
	}
	o := w.options
	o.Client = mgr.GetClient()
	if err := nodeclass.Setup(mgr, o); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the manager: %v", err)
		}
	})
}

// On a real API server the controller hears of classes and of NodeClaims that go, and trouble mends without a restart.
func TestOnARealCluster(t *testing.T) {
	l := labtest.New(t)
	l.InstallCRDs(crds.FS())
	c := l.Client(newScheme(t))
	w := newWorld(t, account.Options{})
	w.runOn(l)

	ready := func() metav1.ConditionStatus {
		class := &awsv1.EC2NodeClass{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
			t.Fatal(err)
		}
		if r := meta.FindStatusCondition(class.Status.Conditions, v1.ConditionTypeReady); r != nil {
			return r.Status
		}
		return ""
	}
	w.Faults.Deny("ec2:DescribeSubnets")
	class := newClass()
	class.UID, class.Generation = "", 0
	if err := c.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a missing permission makes the class unready", func() bool {
		return ready() == metav1.ConditionFalse
	})
	w.Faults.Clear()
	eventually(t, "the permission makes it ready", func() bool { return ready() == metav1.ConditionTrue })

	node := claim("running", nil, false)
	node.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	if err := c.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the class says that it waits", func() bool {
		return has(w.events.take(), nodeclass.EventWaitingOnNodeClaims, "running")
	})
	if err := c.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the class is gone", func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: "default"}, class))
	})
	if left := w.IAM.Profiles(); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
}
