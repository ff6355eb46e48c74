package onlab

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

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/join"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

const userData = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: lab, apiServerEndpoint: https://x, certificateAuthority: eA==, cidr: 10.100.0.0/16}
  kubelet:
    config: {maxPods: 17}
    flags: ["--node-labels=team=a"]
`

// launch starts machines over the wire.
func launch(t *testing.T, a *account.Account, config aws.Config, count int32) {
	t.Helper()
	in := &ec2.RunInstancesInput{
		InstanceType: "m5.large", MinCount: aws.Int32(count), MaxCount: aws.Int32(count),
		SubnetId: aws.String(a.Network.Private[0]),
		UserData: aws.String(base64.StdEncoding.EncodeToString([]byte(userData))),
	}
	for _, m := range a.World.Images() {
		if strings.HasPrefix(aws.ToString(m.Name), "amazon-eks-node-al2023-x86_64-standard") {
			in.ImageId = m.ImageId
		}
	}
	if _, err := ec2.NewFromConfig(config).RunInstances(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not so after 30 s: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func nodes(t *testing.T, c client.Client) map[string]corev1.Node {
	t.Helper()
	list := &corev1.NodeList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	all := map[string]corev1.Node{}
	for _, n := range list.Items {
		all[n.Name] = n
	}
	return all
}

func ready(all map[string]corev1.Node) int {
	n := 0
	for _, node := range all {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				n++
			}
		}
	}
	return n
}

func TestMachinesBecomeNodesThatRunPods(t *testing.T) {
	const count = 20
	l := labtest.New(t)
	c := l.Client(scheme.Scheme)
	a, config := simtest.Start(t, account.Options{Timing: cloud.Timing{Boot: 100 * time.Millisecond,
		Shutdown: 100 * time.Millisecond}})
	joiner := join.New(join.Options{World: a.World, API: c, Cluster: a.Cluster, Start: 100 * time.Millisecond,
		Kubelet: "v1.36.3", Log: t.Logf})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- joiner.Run(ctx) }()
	go a.World.Run(ctx, 10*time.Millisecond)
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	launch(t, a, config, count)
	eventually(t, "all nodes are ready", func() bool { return ready(nodes(t, c)) == count })

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: l.Namespace()},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"team": "a", corev1.LabelInstanceTypeStable: "m5.large"},
			Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod runs", func() bool {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			t.Fatal(err)
		}
		return pod.Status.Phase == corev1.PodRunning
	})

	all := a.World.Instances()
	dead, gone := all[0], all[1]
	if err := a.World.Kill(dead.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.World.Terminate([]string{gone.ID}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the terminated machine's node is gone", func() bool {
		_, there := nodes(t, c)[gone.PrivateDNS]
		return !there
	})
	eventually(t, "the dead machine's kubelet is silent", func() bool {
		n, there := nodes(t, c)[dead.PrivateDNS]
		return there && n.Labels["kwok.x-k8s.io/node"] == ""
	})
}
