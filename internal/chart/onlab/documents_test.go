package onlab

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/lab"
	"github.com/tenon-sh/tenon/internal/lab/labaws"
	"github.com/tenon-sh/tenon/internal/lab/labpods"
)

// cluster is the name that the documents' variables stand for.
const cluster = "eks-karpenter-demo"

// document is how a generation of documents installs the controller and looks at it, as printed but for the chart's address.
type document struct {
	name, namespace string
	// before prepares what other commands of the document do.
	before func(*world)
	// commands run one after the other; the last one shows the log.
	commands []string
}

func documents() []document {
	return []document{
		{name: "2021", namespace: "karpenter", before: func(w *world) {
			// eksctl create iamserviceaccount
			if err := w.c.Create(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter", Name: "karpenter"}}); err != nil {
				w.Fatal(err)
			}
		}, commands: []string{
			`helm upgrade --install --skip-crds karpenter $CHART --namespace karpenter \
  --create-namespace --set serviceAccount.create=false --version 0.5.0 \
  --set controller.clusterName=eks-karpenter-demo \
  --set controller.clusterEndpoint=$(aws eks describe-cluster --name eks-karpenter-demo --query "cluster.endpoint" --output json) \
  --set defaultProvisioner.create=false \
  --wait # for the defaulting webhook to install before creating a Provisioner`,
			`kubectl logs -n karpenter $(kubectl get pods -n karpenter -l karpenter=controller -o name)`,
		}},
		{name: "v1beta1", namespace: "karpenter", commands: []string{
			`helm install karpenter $CHART \
     --version v0.32.0 \
     --namespace karpenter \
     --create-namespace \
     --set serviceAccount.annotations."eks\.amazonaws\.com/role-arn"=${KARPENTER_IAM_ROLE_ARN} \
     --set settings.aws.clusterName=${CLUSTER_NAME} \
     --set settings.aws.defaultInstanceProfile=KarpenterNodeInstanceProfile \
     --wait`,
			`kubectl get pods -n karpenter`,
			`kubectl logs -n karpenter -l app.kubernetes.io/name=karpenter`,
		}},
		{name: "v1", namespace: "kube-system", commands: []string{
			`helm --namespace 'kube-system' upgrade --create-namespace \
  --install 'karpenter' $CHART --version '1.1.1' \
  --set 'settings.clusterName=eks-karpenter-demo' \
  --set 'settings.interruptionQueue=eks-karpenter-demo' \
  --set 'controller.resources.requests.cpu=1' \
  --set 'controller.resources.requests.memory=1Gi' \
  --set 'controller.resources.limits.cpu=1' \
  --set 'controller.resources.limits.memory=1Gi' \
  --set 'serviceAccount.annotations."eks.amazonaws.com/role-arn"=arn:aws:iam::012345678901:role/myCluster-karpenter' \
  --wait`,
			`kubectl logs -n kube-system -l karpenter=controller`,
		}},
	}
}

// TestTheDocumentsCommands: what three generations of documents tell a reader to type installs a controller for AWS, and shows its log.
func TestTheDocumentsCommands(t *testing.T) {
	w := newWorld(t, func(w *world, o *labpods.Options) {
		account, err := labaws.Start(labaws.Options{Kubeconfig: w.lab.Kubeconfig(), Cluster: cluster, Families: []string{"m5"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = account.Close() })
		o.Env = account.Environment
	})
	// The documents' definitions come with another command: --skip-crds.
	w.runHelm("install", "karpenter-crd", w.helm.Chart("karpenter-crd"), "--namespace", "default", "--take-ownership")
	shell := w.shell()
	for _, d := range documents() {
		if d.before != nil {
			d.before(w)
		}
		var out string
		for _, command := range d.commands {
			raw, err := shell(command).CombinedOutput()
			if out = string(raw); err != nil {
				t.Fatalf("%s: %s\n%v\n%s", d.name, command, err, out)
			}
		}
		if !strings.Contains(out, `"message":"starting"`) || !strings.Contains(out, `"provider":"aws"`) || strings.Contains(out, "forbidden") {
			t.Errorf("%s: the log is\n%s", d.name, out)
		}
		w.runHelm("uninstall", release, "--namespace", d.namespace, "--wait", "--timeout", "2m")
		w.eventually("its pods are gone", func() string {
			left, err := w.core.CoreV1().Pods(d.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "karpenter=controller"})
			if err != nil || len(left.Items) > 0 {
				return fmt.Sprint(err, len(left.Items))
			}
			return ""
		})
		_ = w.core.CoreV1().ServiceAccounts("karpenter").Delete(t.Context(), "karpenter", metav1.DeleteOptions{})
	}
}

// shell runs commands as a reader would, with helm, kubectl and a stand-in for AWS's command line.
func (w *world) shell() func(string) *exec.Cmd {
	w.Helper()
	tools := w.TempDir()
	kube, err := lab.Binary(w.Context(), io.Discard)
	if err != nil {
		w.Fatal(err)
	}
	path, err := w.helm.Path()
	if err != nil {
		w.Fatal(err)
	}
	for name, target := range map[string]string{"kubectl": kube, "helm": path} {
		if err := os.Symlink(target, filepath.Join(tools, name)); err != nil {
			w.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(tools, "aws"), []byte("#!/bin/sh\necho '\"https://0123456789.gr7.us-west-2.eks.amazonaws.com\"'\n"), 0o755); err != nil {
		w.Fatal(err)
	}
	return func(command string) *exec.Cmd {
		cmd := exec.CommandContext(w.Context(), "sh", "-c", command)
		cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG="+w.lab.Kubeconfig(), "CHART="+w.helm.Chart("karpenter"), "CLUSTER_NAME="+cluster,
			"KARPENTER_IAM_ROLE_ARN=arn:aws:iam::012345678901:role/karpenter", "HELM_CACHE_HOME="+tools, "HELM_CONFIG_HOME="+tools, "HELM_DATA_HOME="+tools)
		return cmd
	}
}
