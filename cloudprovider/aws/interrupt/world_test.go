package interrupt_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	simec2 "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
	"github.com/tenon-sh/tenon/cloudprovider/aws/interrupt"
)

// lines are what was told, in order.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, line)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.list...)
}

func (l *lines) count(part string) int {
	n := 0
	for _, line := range l.all() {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// Eventf keeps an event as one line.
func (l *lines) Eventf(on, _ runtime.Object, kind, reason, _, note string, args ...any) {
	ref := on.(*corev1.ObjectReference)
	l.add(fmt.Sprintf("%s %s/%s %s: %s", kind, ref.Kind, ref.Name, reason, fmt.Sprintf(note, args...)))
}

// world is a simulated account, an API server in memory, and a Watcher between them.
type world struct {
	*account.Account
	t        *testing.T
	clock    *simtest.Clock
	config   aws.Config
	kube     client.WithWatch
	events   *lines
	logged   *lines
	registry *prometheus.Registry
	options  interrupt.Options
	// refuse, if it is set, is the API server's answer to patches.
	mu     sync.Mutex
	refuse error
	tried  int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock, limits := simtest.NewClock(), simec2.NoLimits()
	w := &world{t: t, clock: clock, events: &lines{}, logged: &lines{}, registry: prometheus.NewRegistry()}
	w.Account, w.config = simtest.Start(t, account.Options{Clock: clock, After: clock.After, Limits: &limits})
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w.kube = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			w.mu.Lock()
			err := w.refuse
			w.tried++
			w.mu.Unlock()
			if err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	w.options = interrupt.Options{
		Client: w.kube, SQS: sqs.NewFromConfig(w.config), Queue: w.Cluster, EC2: ec2.NewFromConfig(w.config),
		Instances: ec2.NewFromConfig(w.config), Region: w.config.Region, Events: w.events, Metrics: w.registry,
		Now: clock.Now, After: clock.After,
	}
	return w
}

// start runs a Watcher until the test ends, or until the function that it returns is called.
func (w *world) start() (stop func()) {
	w.t.Helper()
	watcher, err := interrupt.New(w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ctx = log.IntoContext(ctx, funcr.New(func(prefix, args string) { w.logged.add(prefix + args) }, funcr.Options{}))
	ended := make(chan error, 1)
	go func() { ended <- watcher.Start(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				w.t.Error(err)
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

// launch runs a spot machine, with its claim and its node.
func (w *world) launch(name string) (id string) {
	w.t.Helper()
	in := &ec2.RunInstancesInput{
		InstanceType: "m5.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		SubnetId:              aws.String(w.Network.Private[0]),
		InstanceMarketOptions: &ec2types.InstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeSpot},
	}
	for _, m := range w.World.Images() {
		if strings.HasPrefix(aws.ToString(m.Name), "amazon-eks-node-al2023-x86_64-standard") {
			in.ImageId = m.ImageId
		}
	}
	out, err := ec2.NewFromConfig(w.config).RunInstances(context.Background(), in)
	if err != nil {
		w.t.Fatal(err)
	}
	id = aws.ToString(out.Instances[0].InstanceId)
	if name != "" {
		w.claim(name, id)
	}
	return id
}

// claim makes the claim and the node of a machine.
func (w *world) claim(name, id string) {
	w.t.Helper()
	w.claimOf(name, id, v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"})
}

// claimOf makes them for a NodeClass of any kind.
func (w *world) claimOf(name, id string, class v1.NodeClassReference) {
	w.t.Helper()
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		Finalizers: []string{v1.TerminationFinalizer}}}
	claim.Spec.NodeClassRef = &class
	claim.Status.ProviderID, claim.Status.NodeName = "aws:///us-west-2a/"+id, "node-"+name
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name, UID: types.UID("uid-node-" + name)}}
	for _, obj := range []client.Object{claim, node} {
		if err := w.kube.Create(context.Background(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
}

// interruption is what a claim says.
func (w *world) interruption(name string) string {
	claim := &v1.NodeClaim{}
	if err := w.kube.Get(context.Background(), client.ObjectKey{Name: name}, claim); err != nil {
		return err.Error()
	}
	return claim.Annotations[cloudprovider.InterruptionAnnotation]
}

// refusing makes the API server answer patches with the error; nil ends that.
func (w *world) refusing(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = err
}

func (w *world) patches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tried
}

// counter is the value of a counter, or gauge, with the label's value if it has one.
func (w *world) counter(name, label string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if label == "" || len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return 0
}

// series is how many series a metric has.
func (w *world) series(name string) int {
	w.t.Helper()
	n, err := testutil.GatherAndCount(w.registry, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// until waits until something is so; meanwhile the clock goes on by the step, again and again.
func (w *world) until(what string, step time.Duration, so func() bool) {
	w.t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-deadline:
			w.t.Fatalf("in vain: %s\nlog:\n%s\nevents:\n%s", what, strings.Join(w.logged.all(), "\n"),
				strings.Join(w.events.all(), "\n"))
		case <-tick.C:
			if step > 0 {
				w.clock.Advance(step)
			}
		}
	}
}
