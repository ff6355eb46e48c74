package e2e

import (
	"path"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
)

// TestOlderManifestsMakeNodes: manifests of v1beta1 as the founding documents have them, with no NodeClass, no role and no selectors
// named, apply as soon as a controller runs, and their pods get the nodes that they ask for.
func TestOlderManifestsMakeNodes(t *testing.T) {
	w := newAWSWorld(t)
	w.run("--kubeconfig", w.asServiceAccount(w.lab.Config()), "--webhook-port", freePort(t))
	for _, gvk := range []schema.GroupVersionKind{
		v1beta1.GroupVersion().WithKind("NodePoolList"), {Group: awsv1.Group, Version: "v1beta1", Kind: "EC2NodeClassList"},
	} {
		w.eventually(func() string {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk)
			if err := w.c.List(w.ctx, list); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	founding := path.Join("..", "..", "webhook", "testdata", "founding")
	for _, name := range []string{"003-04-ec2nodeclass", "003-11-nodepool", "003-12-nodepool-ec2nodeclass"} {
		w.apply(path.Join(founding, name))
	}
	gpu := w.deployment("gpu", 1, "1")
	gpu.Spec.Template.Spec.NodeSelector = map[string]string{"node-type": "gpu"}
	gpu.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
	w.create(w.deployment("plain", 3, "1"), gpu)
	w.eventually(w.allRunning(4))
}
