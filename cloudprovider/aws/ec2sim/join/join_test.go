package join_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	sim "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/join"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

const nodeConfig = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: lab, apiServerEndpoint: https://x, certificateAuthority: eA==, cidr: 10.100.0.0/16}
  kubelet:
    config:
      maxPods: 17
      registerWithTaints: [{key: karpenter.sh/unregistered, effect: NoExecute}]
    flags: ["--node-labels=team=a,karpenter.sh/nodepool=default"]
`

// stage is an account, a Kubernetes API in memory and a joiner between them.
type stage struct {
	*account.Account
	t      *testing.T
	clock  *simtest.Clock
	config aws.Config
	api    client.Client
	joiner *join.Joiner
}

func start(t *testing.T, objects ...client.Object) stage {
	t.Helper()
	clock, limits := simtest.NewClock(), sim.NoLimits()
	a, config := simtest.Start(t, account.Options{Clock: clock, Limits: &limits,
		Timing: cloud.Timing{Boot: 10 * time.Second, Shutdown: 5 * time.Second}})
	api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	joiner := join.New(join.Options{World: a.World, API: api, Cluster: a.Cluster, Start: 20 * time.Second,
		Kubelet: "v1.33.1"})
	return stage{a, t, clock, config, api, joiner}
}

func (s stage) launch(userData string) cloud.Instance {
	s.t.Helper()
	in := &ec2.RunInstancesInput{
		InstanceType: "m5.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		SubnetId: aws.String(s.Network.Private[1]),
		UserData: aws.String(base64.StdEncoding.EncodeToString([]byte(userData))),
	}
	for _, m := range s.World.Images() {
		if strings.HasPrefix(aws.ToString(m.Name), "amazon-eks-node-al2023-x86_64-standard") {
			in.ImageId = m.ImageId
		}
	}
	out, err := ec2.NewFromConfig(s.config).RunInstances(context.Background(), in)
	if err != nil {
		s.t.Fatal(err)
	}
	i, _ := s.World.Instance(aws.ToString(out.Instances[0].InstanceId))
	return i
}

// look lets the joiner look at a machine.
func (s stage) look(i cloud.Instance) time.Duration {
	s.t.Helper()
	wait, err := s.joiner.Look(context.Background(), i.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return wait
}

// node is the machine's Node, or nil.
func (s stage) node(i cloud.Instance) *corev1.Node {
	s.t.Helper()
	n := &corev1.Node{}
	err := s.api.Get(context.Background(), client.ObjectKey{Name: i.PrivateDNS}, n)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return n
}

// joined launches a machine and lets it join.
func (s stage) joined() (cloud.Instance, *corev1.Node) {
	s.t.Helper()
	i := s.launch(nodeConfig)
	s.clock.Advance(30 * time.Second)
	s.look(i)
	n := s.node(i)
	if n == nil {
		s.t.Fatalf("%s did not join: %v", i.ID, s.joiner.Problems())
	}
	return i, n
}

func TestAMachineJoins(t *testing.T) {
	s := start(t)
	i := s.launch(nodeConfig)
	if s.look(i); s.node(i) != nil {
		t.Error("a machine joins while it boots")
	}
	s.clock.Advance(10 * time.Second)
	if wait := s.look(i); wait != 20*time.Second || s.node(i) != nil {
		t.Errorf("a machine that just came up waits %v and has the node %v", wait, s.node(i))
	}
	s.clock.Advance(20 * time.Second)
	s.look(i)
	n := s.node(i)
	if n == nil {
		t.Fatalf("the machine did not join: %v", s.joiner.Problems())
	}
	if want := "aws:///us-west-2b/" + i.ID; n.Spec.ProviderID != want {
		t.Errorf("the provider ID is %s, want %s", n.Spec.ProviderID, want)
	}
	for label, want := range map[string]string{
		"team": "a", "karpenter.sh/nodepool": "default", "kubernetes.io/hostname": i.PrivateDNS,
		"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "us-west-2b",
		"topology.kubernetes.io/region": "us-west-2",
		"topology.k8s.aws/zone-id":      "usw2-az2", "kwok.x-k8s.io/node": "fake",
	} {
		if n.Labels[label] != want {
			t.Errorf("the label %s is %q, want %q", label, n.Labels[label], want)
		}
	}
	if n.Annotations["lab.tenon.sh/volume-limit"] == "" {
		t.Error("the node does not say how many volumes it takes")
	}
	if n.Annotations["kwok.x-k8s.io/node"] != "fake" {
		t.Error("kwok does not see the node")
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "karpenter.sh/unregistered" {
		t.Errorf("the taints are %v", n.Spec.Taints)
	}
	if n.Status.Capacity.Pods().Value() != 17 || n.Status.Allocatable.Cpu().MilliValue() != 1930 {
		t.Errorf("the node has room for %v", n.Status.Allocatable)
	}
	if c := n.Status.Conditions; len(c) != 1 || c[0].Type != corev1.NodeReady || c[0].Status != corev1.ConditionFalse {
		t.Errorf("the node begins with %v, want not ready", c)
	}
	if err := s.api.Delete(context.Background(), n); err != nil {
		t.Fatal(err)
	}
	if s.look(i); s.node(i) != nil {
		t.Error("a kubelet registers a second time after somebody deleted the node")
	}
}

func TestAMachineEnds(t *testing.T) {
	s := start(t)
	i, _ := s.joined()
	if _, err := s.World.Terminate([]string{i.ID}); err != nil {
		t.Fatal(err)
	}
	s.look(i)
	if n := s.node(i); n == nil || n.Labels["kwok.x-k8s.io/node"] != "" || n.Annotations["kwok.x-k8s.io/node"] != "" {
		t.Errorf("while a machine shuts down its node is %v, want one without heartbeats", n)
	}
	s.clock.Advance(5 * time.Second)
	if s.look(i); s.node(i) != nil {
		t.Error("a terminated machine's node is still there")
	}
}

func TestAMachineDies(t *testing.T) {
	s := start(t)
	i, _ := s.joined()
	if err := s.World.Kill(i.ID); err != nil {
		t.Fatal(err)
	}
	s.look(i)
	if n := s.node(i); n == nil || n.Labels["kwok.x-k8s.io/node"] != "" {
		t.Errorf("a dead machine's node is %v, want one without heartbeats", n)
	}
}

func TestAMachineThatCanNotJoin(t *testing.T) {
	for name, userData := range map[string]string{
		"cluster \"other\"":          strings.Replace(nodeConfig, "name: lab", "name: other", 1),
		"there is no NodeConfig":     "#!/bin/bash",
		"the kubelet does not start": strings.Replace(nodeConfig, "team=a", "node-role.kubernetes.io/x=a", 1),
		"threshold": strings.Replace(nodeConfig, "maxPods: 17", "evictionHard: {memory.available: "+
			"lots}", 1),
	} {
		s := start(t)
		i := s.launch(userData)
		s.clock.Advance(time.Minute)
		s.look(i)
		if got := s.joiner.Problems()[i.ID]; s.node(i) != nil || !strings.Contains(got, name) {
			t.Errorf("the problem is %q, want %q", got, name)
		}
	}
}

func TestAnAddressIsUsedAgain(t *testing.T) {
	s := start(t)
	i := s.launch(nodeConfig)
	old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: i.PrivateDNS},
		Spec: corev1.NodeSpec{ProviderID: "aws:///us-west-2b/i-00000000000000000"}}
	if err := s.api.Create(context.Background(), old); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(time.Minute)
	if _, err := s.joiner.Look(context.Background(), i.ID); err == nil {
		t.Error("a machine takes over the node of another one")
	}
	if _, err := s.joiner.Look(context.Background(), "i-00000000000000000"); err != nil {
		t.Fatal(err)
	}
	s.look(i)
	if n := s.node(i); n == nil || !strings.HasSuffix(n.Spec.ProviderID, i.ID) {
		t.Errorf("after the old node went the node is %v", n)
	}
}

// telling is an API that tells of every new and every deleted node.
type telling struct {
	client.Client
	created, deleted chan string
}

func (a telling) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	err := a.Client.Create(ctx, obj, opts...)
	a.created <- obj.GetName()
	return err
}

func (a telling) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	err := a.Client.Delete(ctx, obj, opts...)
	a.deleted <- obj.GetName()
	return err
}

func TestRun(t *testing.T) {
	lost := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lost"},
		Spec: corev1.NodeSpec{ProviderID: "aws:///us-west-2b/i-00000000000000000"}}
	s := start(t, lost)
	api := telling{s.api, make(chan string), make(chan string)}
	joiner := join.New(join.Options{World: s.World, API: api, Cluster: s.Cluster})
	there := s.launch(nodeConfig)
	s.clock.Advance(10 * time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- joiner.Run(ctx) }()
	if got := <-api.deleted; got != "lost" {
		t.Errorf("%s was deleted, want the node without a machine", got)
	}
	if got := <-api.created; got != there.PrivateDNS {
		t.Errorf("%s joined, want the machine that was there", got)
	}
	later := s.launch(nodeConfig)
	s.clock.Advance(10 * time.Second)
	s.World.Tick()
	if got := <-api.created; got != later.PrivateDNS {
		t.Errorf("%s joined, want the machine that came later", got)
	}
	if _, err := s.World.Terminate([]string{later.ID}); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(5 * time.Second)
	s.World.Tick()
	if got := <-api.deleted; got != later.PrivateDNS {
		t.Errorf("%s was deleted, want the machine that ended", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
