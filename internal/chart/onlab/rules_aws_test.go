package onlab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/internal/lab/labaws"
	"github.com/tenon-sh/tenon/internal/lab/labpods"
)

// withAccount gives the pods a simulated AWS account, for a cluster called lab.
func withAccount(w *world, o *labpods.Options) {
	account, err := labaws.Start(labaws.Options{Kubeconfig: w.lab.Kubeconfig()})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = account.Close() })
	o.Env = account.Environment
}

// TestEachRuleIsNeededOnAWS does with the rules of rbac/aws.yaml what TestEachRuleIsNeeded does with the others.
func TestEachRuleIsNeededOnAWS(t *testing.T) {
	w := newWorld(t, withAccount)
	w.runHelm("install", release, w.helm.Chart("karpenter"), "--namespace", release, "--wait", "--timeout", "2m",
		"--set", "settings.clusterName=lab,replicas=1")
	grants := w.grants()
	start, work := w.rights(grants)
	others := func(r *right) bool {
		return !slices.Contains([]string{"ClusterRole karpenter", "Role kube-system/karpenter-dns"}, r.role.name)
	}
	start, work = slices.DeleteFunc(start, others), slices.DeleteFunc(work, others)
	if len(start) != 6 || len(work) != 5 {
		t.Errorf("of rbac/aws.yaml %d rights are for the start, and %d for work: %v %v", len(start), len(work),
			start, work)
	}
	stop := w.keepBusy(w.roundsOnAWS())
	defer func() { // the next test has the same lab
		stop()
		w.eventually("the classes are gone", func() string { return w.removeOlder(t.Context()) })
		w.runHelm("uninstall", release, "--namespace", release, "--wait", "--timeout", "2m")
	}()
	w.take(grants, start)
	w.awaitComplaints(grants, start, w.restart())
	w.take(grants, work)
	w.awaitComplaints(grants, work, nil)
}

const (
	olderTemplate = `
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: older}
spec: {subnetSelector: {karpenter.sh/discovery: lab}, securityGroupSelector: {karpenter.sh/discovery: lab}}
`
	olderProvisioner = `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: older}
spec:
  provider: {subnetSelector: {karpenter.sh/discovery: lab}, securityGroupSelector: {karpenter.sh/discovery: lab}}
`
	// ofOlder is the EC2NodeClass that is made from the Provisioner.
	ofOlder = "provisioner-older"
)

// roundsOnAWS: classes come, from older objects, too; a Provisioner no longer needs a class of its own; all go.
func (w *world) roundsOnAWS() []func(context.Context) {
	ofTemplate := []byte(`{"spec":{"provider":null,"providerRef":{"name":"older"}}}`)
	return []func(context.Context){
		func(ctx context.Context) {
			_ = w.c.Create(ctx, parsed(w.T, olderTemplate))
			_ = w.c.Create(ctx, parsed(w.T, olderProvisioner))
			w.round(ctx, func(ctx context.Context) bool { return w.hasClass(ctx, ofOlder) && w.hasClass(ctx, "older") })
		},
		func(ctx context.Context) {
			_ = w.c.Patch(ctx, parsed(w.T, olderProvisioner), client.RawPatch(types.MergePatchType, ofTemplate))
			w.round(ctx, func(ctx context.Context) bool { return !w.hasClass(ctx, ofOlder) })
		},
		func(ctx context.Context) {
			_ = w.c.Delete(ctx, parsed(w.T, olderProvisioner))
			_ = w.c.Delete(ctx, parsed(w.T, olderTemplate))
			w.round(ctx, func(ctx context.Context) bool {
				return !w.hasClass(ctx, ofOlder) && !w.hasClass(ctx, "older")
			})
		},
	}
}

// removeOlder deletes what the rounds make, and says what is left.
func (w *world) removeOlder(ctx context.Context) string {
	for _, text := range []string{olderProvisioner, olderTemplate} {
		if err := w.c.Delete(ctx, parsed(w.T, text)); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("an older object is there (%v)", err)
		}
	}
	if w.hasClass(ctx, ofOlder) || w.hasClass(ctx, "older") {
		return "an EC2NodeClass is there"
	}
	return ""
}

// hasClass reports whether there is an EC2NodeClass of the name.
func (w *world) hasClass(ctx context.Context, name string) bool {
	class := &unstructured.Unstructured{}
	class.SetAPIVersion("karpenter.k8s.aws/v1")
	class.SetKind("EC2NodeClass")
	return w.c.Get(ctx, client.ObjectKey{Name: name}, class) == nil
}

// parsed is the object that a manifest says.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.TrimSpace(text)), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}
