package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/internal/lab/labaws"
)

// awsWorld is a lab beside a simulated AWS account, whose instances are its nodes.
type awsWorld struct {
	*world
	cloud *labaws.Cloud
	begun time.Time
}

// step notes in the log of the test how far it is.
func (w *awsWorld) step(format string, args ...any) {
	w.Helper()
	w.Logf("%5.1f s  %s", time.Since(w.begun).Seconds(), fmt.Sprintf(format, args...))
}

// warning is how long before its end a spot instance is warned here. A replacement takes a few seconds.
const warning = 30 * time.Second

func newAWSWorld(t *testing.T, change ...func(*labaws.Options)) *awsWorld {
	t.Helper()
	w := &awsWorld{world: newWorld(t), begun: time.Now()}
	options := labaws.Options{
		Kubeconfig: w.lab.Kubeconfig(), Cluster: "my-cluster", Families: []string{"c5", "c6i", "m5", "m6i", "p3", "t3"},
		Boot: 200 * time.Millisecond, Join: 300 * time.Millisecond,
		Shutdown: 200 * time.Millisecond, Warning: warning, Log: func(format string, args ...any) {
			t.Logf("aws: "+format, args...)
		},
	}
	for _, f := range change {
		f(&options)
	}
	var err error
	w.cloud, err = labaws.Start(options)
	w.must(err)
	t.Cleanup(func() {
		if err := w.cloud.Close(); err != nil {
			t.Error(err)
		}
	})
	// Controllers have a role, which they take on with the token of a service account, as on EKS, and no key of their
	// own.
	w.env = append(w.cloud.Environment(), "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=",
		"AWS_ROLE_ARN="+w.cloud.ControllerRole(), "AWS_WEB_IDENTITY_TOKEN_FILE="+w.webIdentity())
	return w
}

// webIdentity is a file with the token of a service account for STS.
func (w *awsWorld) webIdentity() string {
	w.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.lab.Namespace(), Name: "role"}}
	w.must(w.c.Create(w.ctx, account))
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"sts.amazonaws.com"}},
	}
	w.must(w.c.SubResource("token").Create(w.ctx, account, request))
	path := filepath.Join(w.TempDir(), "token")
	w.must(os.WriteFile(path, []byte(request.Status.Token), 0o600))
	return path
}

// sessions are the ids of the keys with which controllers sign.
func (w *awsWorld) sessions() []string {
	var ids []string
	known, _ := w.cloud.Keys.List()
	for _, k := range known {
		if k.Token != "" {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// alive lists the instances that EC2 runs.
func (w *awsWorld) alive() []cloud.Instance {
	return slices.DeleteFunc(w.cloud.World.Instances(), func(i cloud.Instance) bool { return !i.State.Alive() })
}

// nothingLeft says what is left of nodes, claims and instances.
func (w *awsWorld) nothingLeft() string {
	if nodes, claims, instances := len(w.nodes()), len(w.claims()), len(w.alive()); nodes+claims+instances > 0 {
		return fmt.Sprintf("%d nodes, %d claims and %d instances are left", nodes, claims, instances)
	}
	return ""
}

// tally says what is wrong with the books: every instance has one claim and one node.
func (w *awsWorld) tally() string {
	if nodes, claims, instances := len(w.nodes()), len(w.claims()), len(w.alive()); nodes != claims ||
		claims != instances {
		return fmt.Sprintf("%d nodes, %d claims and %d instances: they should be equal", nodes, claims, instances)
	}
	return ""
}

// ec2Class is a class of Amazon Linux 2023 nodes in the account's network.
func ec2Class(name string) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Role = "KarpenterNodeRole-my-cluster"
	c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	c.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{
		Tags: map[string]string{"karpenter.sh/discovery": "my-cluster"},
	}}
	c.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{
		Tags: map[string]string{"karpenter.sh/discovery": "my-cluster"},
	}}
	return c
}

// ec2Pool is a pool of middling machines.
func ec2Pool(name string, change ...func(*v1.NodePool)) *v1.NodePool {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
		{Key: awsv1.InstanceFamilyLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"c5", "c6i",
			"m5", "m6i"}},
		{Key: awsv1.InstanceCPULabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"4"}},
	}
	p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "100%"}}
	for _, f := range change {
		f(p)
	}
	return p
}

// ofClass gives a pool another class.
func ofClass(name string) func(*v1.NodePool) {
	return func(p *v1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = name }
}

// bought keeps a pool to a capacity type.
func bought(how string) func(*v1.NodePool) {
	return func(p *v1.NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
			v1.NodeSelectorRequirementWithMinValues{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn,
				Values: []string{how}})
	}
}
