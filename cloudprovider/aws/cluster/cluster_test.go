package cluster_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tenon-sh/tenon/cloudprovider/aws/cluster"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	simeks "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/eks"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// server is an API server of a version, or one that does not answer.
type server struct{ info *version.Info }

func (s *server) ServerVersion() (*version.Info, error) {
	if s.info == nil {
		return nil, errors.New("connection refused")
	}
	return s.info, nil
}

// scene is an account with a cluster, and a clock.
type scene struct {
	*account.Account
	api *server
	o   cluster.Options

	mu  sync.Mutex
	now time.Time
}

// time is what the clock shows, pass lets time pass.
func (s *scene) time() time.Time      { s.mu.Lock(); defer s.mu.Unlock(); return s.now }
func (s *scene) pass(d time.Duration) { s.mu.Lock(); defer s.mu.Unlock(); s.now = s.now.Add(d) }

func newScene(t *testing.T, objects ...client.Object) *scene {
	t.Helper()
	a, config := simtest.Start(t, account.Options{
		Cluster: "prod", Endpoint: "https://prod.example", CABundle: "ZWtz", ServiceCIDR: "10.100.0.0/16",
		Kubernetes: "1.33",
	})
	s := &scene{Account: a, api: &server{info: &version.Info{Major: "1", Minor: "34+"}},
		now: time.Unix(1_700_000_000, 0)}
	s.o = cluster.Options{
		EKS: eks.NewFromConfig(config), Name: "prod", Discovery: s.api, Now: s.time,
		Services: fake.NewClientBuilder().WithObjects(objects...).Build(),
	}
	return s
}

func dns(address string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns"},
		Spec: corev1.ServiceSpec{ClusterIP: address}}
}

func TestEKSTellsWhatIsNotSet(t *testing.T) {
	s := newScene(t, dns("10.100.0.10"))
	f := cluster.New(s.o)
	got, err := f.Cluster(t.Context())
	want := family.Cluster{Name: "prod", Endpoint: "https://prod.example", CABundle: "ZWtz",
		ServiceCIDR: "10.100.0.0/16",
		DNS:         "10.100.0.10"}
	if err != nil || got != want {
		t.Errorf("found %+v, %v; want %+v", got, err, want)
	}
	if vpc := f.VPC(t.Context()); vpc != s.Network.VPC {
		t.Errorf("the network is %q, want %q", vpc, s.Network.VPC)
	}
	if arn, err := f.ARN(t.Context()); err != nil || !strings.HasSuffix(arn, ":cluster/prod") {
		t.Errorf("the ARN is %q, %v", arn, err)
	}
	if n := s.Calls("eks:DescribeCluster"); n != 1 {
		t.Errorf("EKS was asked %d times", n)
	}
}

func TestWhatIsSetWins(t *testing.T) {
	s := newScene(t, dns(corev1.ClusterIPNone))
	s.o.Endpoint, s.o.CABundle, s.o.OwnCA = "https://own.example", "b3du", []byte("controller's")
	got, err := cluster.New(s.o).Cluster(t.Context())
	want := family.Cluster{Name: "prod", Endpoint: "https://own.example", CABundle: "b3du",
		ServiceCIDR: "10.100.0.0/16"}
	if err != nil || got != want {
		t.Errorf("found %+v, %v; want %+v", got, err, want)
	}
	s.o.CABundle = ""
	if ca, err := cluster.New(s.o).CABundle(t.Context()); err != nil ||
		ca != base64.StdEncoding.EncodeToString([]byte("controller's")) {
		t.Errorf("the certificate authority is %q, %v", ca, err)
	}
}

func TestWithoutEKS(t *testing.T) {
	s := newScene(t)
	s.Faults.Deny("eks:DescribeCluster")
	_, err := cluster.New(s.o).Cluster(t.Context())
	for _, want := range []string{"--cluster-endpoint", "eks:DescribeCluster", "AccessDenied"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	// A cluster that is not EKS is told by its endpoint; only the range of services is missing then.
	s.o.Endpoint, s.o.OwnCA = "https://own.example", []byte("controller's")
	if got, err := cluster.New(s.o).Cluster(t.Context()); err != nil || got.Endpoint != "https://own.example" ||
		got.ServiceCIDR != "" {
		t.Errorf("found %+v, %v", got, err)
	}
}

func TestAnOldAnswerHoldsWhileNobodyAnswers(t *testing.T) {
	s := newScene(t)
	broken := &brokenEKS{API: s.o.EKS}
	s.o.EKS = broken
	f := cluster.New(s.o)
	if _, err := f.Cluster(t.Context()); err != nil {
		t.Fatal(err)
	}
	broken.off.Store(true)
	s.pass(time.Hour)
	// Whoever asks again and again does not make the service be asked again and again.
	for range 10 {
		if got, err := f.Cluster(t.Context()); err != nil || got.Endpoint != "https://prod.example" {
			t.Errorf("found %+v, %v", got, err)
		}
	}
	eventually(t, "EKS is asked again", func() bool { return broken.asked.Load() > 0 })
	if n := broken.asked.Load(); n != 1 {
		t.Errorf("EKS was asked %d times while it was out of order", n)
	}
	broken.off.Store(false)
	s.EKS.Put(described(s))
	s.pass(time.Minute)
	eventually(t, "the new answer", func() bool {
		got, err := f.Cluster(t.Context())
		return err == nil && got.ServiceCIDR == "10.200.0.0/16"
	})
}

// brokenEKS fails while it is off.
type brokenEKS struct {
	cluster.API
	off   atomic.Bool
	asked atomic.Int32
}

func (b *brokenEKS) DescribeCluster(ctx context.Context, in *eks.DescribeClusterInput,
	opts ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	if b.off.Load() {
		b.asked.Add(1)
		return nil, errors.New("out of order")
	}
	return b.API.DescribeCluster(ctx, in, opts...)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("%s does not come", what)
		}
		<-time.After(time.Millisecond)
	}
}

// silentEKS is an endpoint that packets vanish on the way to.
type silentEKS struct{ asked atomic.Int32 }

func (s *silentEKS) DescribeCluster(ctx context.Context, _ *eks.DescribeClusterInput,
	_ ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	s.asked.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// In a private network without an endpoint of EKS nobody answers. Who has set where the cluster is needs nothing of
// EKS.
func TestUnreachableEKSKeepsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := &silentEKS{}
		f := cluster.New(cluster.Options{EKS: silent, Name: "prod", Endpoint: "https://own.example", CABundle: "b3du",
			Now:      time.Now,
			Services: fake.NewClientBuilder().Build()})
		began := time.Now()
		for i := range 20 {
			launch, cancel := context.WithTimeout(t.Context(), time.Minute)
			got, err := f.Cluster(launch)
			cancel()
			if err != nil || got.Endpoint != "https://own.example" {
				t.Fatalf("launch %d found %+v, %v", i, got, err)
			}
			<-time.After(2 * time.Second)
		}
		if waited := time.Since(began) - 40*time.Second; waited > 5*time.Second || silent.asked.Load() != 3 {
			t.Errorf("launches waited for %v, EKS was asked %d times; want one wait of 5s and three questions", waited,
				silent.asked.Load())
		}
		if _, err := cluster.New(cluster.Options{EKS: silent, Name: "prod", Now: time.Now}).
			Cluster(t.Context()); err == nil || !strings.Contains(err.Error(), "--cluster-endpoint") {
			t.Errorf("where EKS is needed: %v", err)
		}
		<-time.After(time.Minute) // what is still out ends
	})
}

// described is the cluster with another range of services.
func described(s *scene) simeks.Cluster {
	c, _ := s.EKS.Cluster("prod")
	c.ServiceCIDR = "10.200.0.0/16"
	return c
}

func TestVersion(t *testing.T) {
	s := newScene(t)
	if v, err := cluster.New(s.o).Version(t.Context()); err != nil || v != "1.34" {
		t.Errorf("the API server's version is %q, %v", v, err)
	}
	s.o.FromEKS = true
	if v, err := cluster.New(s.o).Version(t.Context()); err != nil || v != "1.33" {
		t.Errorf("EKS's version is %q, %v", v, err)
	}
	s.o.FromEKS, s.api.info = false, nil
	if _, err := cluster.New(s.o).Version(t.Context()); err == nil || !strings.Contains(err.Error(),
		"connection refused") {
		t.Errorf("without an API server: %v", err)
	}
}

func TestAnAskerWhoGivesUpSpoilsNothing(t *testing.T) {
	s := newScene(t)
	f := cluster.New(s.o)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Cluster(gone); err == nil {
		t.Error("an answer without asking")
	}
	if _, err := f.Cluster(t.Context()); err != nil {
		t.Errorf("the next asker: %v", err)
	}
}

// Whoever asks while another waits for the answer may lose patience; and once something is known nobody waits.
func TestWaitersGiveUp(t *testing.T) {
	s := newScene(t)
	slow := &slowEKS{API: s.o.EKS, asked: make(chan struct{}), proceed: make(chan struct{})}
	s.o.EKS = slow
	f := cluster.New(s.o)
	first := make(chan error, 1)
	go func() {
		_, err := f.Cluster(t.Context())
		first <- err
	}()
	<-slow.asked
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Cluster(impatient); !errors.Is(err, context.Canceled) {
		t.Errorf("an impatient asker got %v", err)
	}
	slow.proceed <- struct{}{}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	s.pass(time.Hour)
	for range 2 { // the first has it asked for again
		if got, err := f.Cluster(t.Context()); err != nil || got.Endpoint != "https://prod.example" {
			t.Errorf("while it is asked again: %+v, %v", got, err)
		}
	}
	<-slow.asked
	slow.proceed <- struct{}{}
}

// slowEKS answers when it is told to.
type slowEKS struct {
	cluster.API
	asked, proceed chan struct{}
}

func (s *slowEKS) DescribeCluster(ctx context.Context, in *eks.DescribeClusterInput,
	opts ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	s.asked <- struct{}{}
	<-s.proceed
	return s.API.DescribeCluster(ctx, in, opts...)
}

// panickingEKS fails when it is asked.
type panickingEKS struct{ cluster.API }

func (panickingEKS) DescribeCluster(context.Context, *eks.DescribeClusterInput,
	...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	panic("boom")
}

// A panic in a question that is asked in the background is an answer that did not come.
func TestAPanicIsNoAnswer(t *testing.T) {
	s := newScene(t)
	s.o.EKS = panickingEKS{s.o.EKS}
	told := make(chan recovery.Failure, 10)
	s.o.Guard = &recovery.Guard{Tell: func(f recovery.Failure) { told <- f }}
	_, err := cluster.New(s.o).Cluster(t.Context())
	if err == nil || !strings.Contains(err.Error(),
		"asking about the cluster failed, which is a mistake in Tenon: boom") || len(told) == 0 {
		t.Errorf("%v, told %d times", err, len(told))
	}
}
