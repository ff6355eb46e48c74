package kwok_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/conformance"
	"github.com/tenon-sh/tenon/cloudprovider/kwok"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // tests make things fail on purpose
	labtest.Main(m)
}

// realAPI is a real API server with our kinds and a NodeClass.
func realAPI(t *testing.T) (*labtest.Lab, client.Client) {
	t.Helper()
	l := labtest.New(t)
	l.InstallCRDs(crds.FS())
	c := l.Client(newScheme())
	newClass(t, c)
	return l, c
}

// newClass makes the NodeClass anew; the API server's defaults make it ready.
func newClass(t *testing.T, c client.Client) {
	t.Helper()
	class := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := client.IgnoreNotFound(c.Delete(t.Context(), class)); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &kwokv1alpha1.KWOKNodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
	}); err != nil {
		t.Fatal(err)
	}
}

func TestConformanceOnARealCluster(t *testing.T) {
	l, c := realAPI(t)
	conformance.Run(t, conformance.Env{New: func(context.Context) (*conformance.Cloud, error) {
		newClass(t, c)
		return cloudOn(t, c, l.Namespace()), nil
	}})
}

// TestNodesBecomeReady launches many instances at once and wants kwok to make nodes of them.
func TestNodesBecomeReady(t *testing.T) {
	const count = 40
	l, c := realAPI(t)
	p := provider(t, c, func(o *kwok.Options) { o.Namespace = l.Namespace() })
	start(t, p)
	begin := time.Now()
	var group sync.WaitGroup
	failures := make([]error, count)
	for i := range count {
		group.Go(func() { _, failures[i] = p.Create(t.Context(), claim(fmt.Sprintf("general-%d", i))) })
	}
	group.Wait()
	launched := time.Since(begin)
	for _, err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all nodes are ready", func() bool { return countReady(t, c) == count })
	t.Logf("%d instances launched in %s, ready in %s", count, launched, time.Since(begin))

	n := getNode(t, c, "general-0")
	if n.Status.Capacity.Cpu().IsZero() || n.Labels[kwokv1alpha1.InstancePriceLabelKey] == "" {
		t.Errorf("the node lost what it was launched with: %v, %v", n.Status.Capacity, n.Labels)
	}
	if !hasTaint(n, v1.UnregisteredTaintKey) {
		t.Errorf("taints %v lack %s", n.Spec.Taints, v1.UnregisteredTaintKey)
	}
}

func countReady(t *testing.T, c client.Client) int {
	t.Helper()
	all := &corev1.NodeList{}
	if err := c.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	ready := 0
	for i := range all.Items {
		for _, condition := range all.Items[i].Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready
}

func hasTaint(n *corev1.Node, key string) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Key == key {
			return true
		}
	}
	return false
}

// TestNodeClassControllerOnARealCluster annotates a class as a user would and reads the answer.
func TestNodeClassControllerOnARealCluster(t *testing.T) {
	l, c := realAPI(t)
	mgr, err := ctrl.NewManager(l.Config(), ctrl.Options{Scheme: newScheme(),
		Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	p := provider(t, c, func(o *kwok.Options) { o.Namespace = l.Namespace() })
	if err := kwok.SetupNodeClassController(mgr, p); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(p); err != nil {
		t.Fatal(err)
	}
	run(t, mgr)

	instance := create(t, p, claim("general-1"))
	waitForNode(t, c, "general-1")
	annotate(t, c, kwok.FaultLaunchDelay, "soon")
	eventually(t, "a fault that can't be read makes the class not ready", func() bool {
		return readyReason(t, c) == kwok.ReasonInvalidFault
	})
	annotate(t, c, kwok.FaultLaunchDelay, "")
	eventually(t, "without the fault it is ready", func() bool { return readyReason(t, c) == kwok.ReasonReady })

	annotate(t, c, kwok.FaultDisappear, "true")
	eventually(t, "the instance has disappeared", func() bool {
		_, err := p.Get(t.Context(), instance.ProviderID)
		return cloudprovider.IsNotFound(err)
	})
	eventually(t, "the annotation has been taken off", func() bool {
		_, ok := getClass(t, c).Annotations[kwok.FaultDisappear]
		return !ok
	})
}

func run(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager: %v", err)
		}
	})
}

// annotate sets the annotation as kubectl does; an empty text removes it.
func annotate(t *testing.T, c client.Client, key, text string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, text)
	if text == "" {
		patch = fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key)
	}
	if err := c.Patch(t.Context(), getClass(t, c), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func getClass(t *testing.T, c client.Client) *kwokv1alpha1.KWOKNodeClass {
	t.Helper()
	class := &kwokv1alpha1.KWOKNodeClass{}
	if err := c.Get(t.Context(), types.NamespacedName{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	return class
}

func readyReason(t *testing.T, c client.Client) string {
	t.Helper()
	for _, condition := range getClass(t, c).Status.Conditions {
		if condition.Type == v1.ConditionTypeReady {
			return condition.Reason
		}
	}
	return ""
}
