package onlab

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/lab"
	"github.com/tenon-sh/tenon/internal/lab/labaws"
	"github.com/tenon-sh/tenon/internal/lab/labpods"
)

const (
	// script holds the command lines of the documents.
	script = "testdata/documents.sh"
	// commands lists them, each behind the number of its document.
	commands = "testdata/commands.txt"
	// handedOver is the variable that names the folder in which the documents were handed over, for those who have it.
	handedOver = "TENON_FOUNDING_DOCUMENTS"
)

// TestTheDocumentsCommands: what the founding documents tell a reader to type installs a controller, and shows what it
// does.
func TestTheDocumentsCommands(t *testing.T) {
	for _, d := range []struct{ name, region, cluster, namespace, profile string }{
		{"000", "us-east-1", "eks-karpenter-demo", "karpenter", "KarpenterNodeInstanceProfile-eks-karpenter-demo"},
		{"002", "us-west-2", "myCluster", "kube-system", ""}, // it makes no node
		{"003", "us-west-2", "my-cluster", "karpenter", "KarpenterNodeInstanceProfile"},
		{"004", "us-west-2", "my-cluster", "karpenter", "KarpenterNodeInstanceProfile-my-cluster"},
	} {
		t.Run(d.name, func(t *testing.T) {
			var account *labaws.Cloud
			w := newWorld(t, func(w *world, o *labpods.Options) {
				var err error
				if account, err = labaws.Start(labaws.Options{Kubeconfig: w.lab.Kubeconfig(), Region: d.region,
					Cluster: d.cluster}); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = account.Close() })
				account.IAM.PutProfile("KarpenterNodeInstanceProfile", account.NodeRole()) // the fourth document's own
				o.Env = account.Environment
			})
			shell := w.shell("CLUSTER_NAME=" + d.cluster)
			shell("bash " + w.path(script) + " " + d.name)
			out := shell("kubectl logs -n " + d.namespace + " -l karpenter=controller --tail=-1")
			if !strings.Contains(out, `"message":"starting"`) || !strings.Contains(out, `"provider":"aws"`) ||
				strings.Contains(out, "forbidden") {
				t.Errorf("the log is\n%s", out)
			}
			instances := account.World.Instances()
			if (len(instances) == 0) != (d.profile == "") {
				t.Errorf("there are %d instances", len(instances))
			}
			for _, i := range instances {
				if i.Profile != d.profile {
					t.Errorf("instance %s acts as %s, want %s", i.ID, i.Profile, d.profile)
				}
			}
			shell("kubectl delete provisioners,nodepools,ec2nodeclasses --all --timeout 2m")
			w.runHelm("uninstall", release, "--namespace", d.namespace, "--wait", "--timeout", "2m")
			w.eventually("its pods are gone", func() string {
				left, err := w.core.CoreV1().Pods(d.namespace).List(t.Context(),
					metav1.ListOptions{LabelSelector: "karpenter=controller"})
				if err != nil || len(left.Items) > 0 {
					return fmt.Sprint(err, len(left.Items))
				}
				return ""
			})
		})
	}
}

// path is a file's path from anywhere.
func (w *world) path(file string) string {
	w.Helper()
	out, err := filepath.Abs(file)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// shell runs commands as a reader would, in a folder of their own, with helm, kubectl and a stand-in for AWS's command
// line. They must succeed.
func (w *world) shell(more ...string) func(string) string {
	w.Helper()
	tools := w.TempDir()
	kube, err := lab.Binary(w.Context(), io.Discard)
	if err != nil {
		w.Fatal(err)
	}
	helm, err := w.helm.Path()
	if err != nil {
		w.Fatal(err)
	}
	for name, target := range map[string]string{"kubectl": kube, "helm": helm} {
		if err := os.Symlink(target, filepath.Join(tools, name)); err != nil {
			w.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(tools, "aws"),
		[]byte("#!/bin/sh\necho '\"https://0123456789.gr7.us-west-2.eks.amazonaws.com\"'\n"), 0o755); err != nil {
		w.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "HOME="+tools, "KUBECONFIG="+w.lab.Kubeconfig(),
		"CHART="+w.path(w.helm.Chart("karpenter")), "CRD_CHART="+w.path(w.helm.Chart("karpenter-crd")), "MANIFESTS="+
			w.path(root+"/internal/convert/testdata/founding"),
		"KARPENTER_IAM_ROLE_ARN=arn:aws:iam::012345678901:role/karpenter", "HELM_CACHE_HOME="+tools,
		"HELM_CONFIG_HOME="+tools, "HELM_DATA_HOME="+tools)
	return func(command string) string {
		w.Helper()
		cmd := exec.CommandContext(w.Context(), "sh", "-c", command)
		cmd.Env, cmd.Dir = append(slices.Clone(env), more...), tools
		out, err := cmd.CombinedOutput()
		if err != nil {
			w.Fatalf("%s: %v\n%s", command, err, out)
		}
		w.Logf("%s:\n%s", command, out)
		return string(out)
	}
}

// TestEveryCommandOfTheDocuments: the script has each command of the documents, in their order, and the template for
// CloudFormation has each name of those that are not run.
func TestEveryCommandOfTheDocuments(t *testing.T) {
	have := oneLine(readText(t, script))
	template := readText(t, root+"/deploy/aws/cloudformation.yaml")
	for in, what := range map[string][]string{
		"ClusterName=${CLUSTER_NAME}":            {"Parameters:\n  ClusterName:"},
		"role/KarpenterNodeRole-${CLUSTER_NAME}": {"RoleName: !Sub KarpenterNodeRole-${ClusterName}"},
		"KarpenterNodeInstanceProfile-${CLUSTER_NAME}": {"InstanceProfileName: !Sub " +
			"KarpenterNodeInstanceProfile-${ClusterName}", "Roles: [!Ref NodeRole]"},
		"eksctl create iamidentitymapping":         {"NodeAccessEntry:", "PrincipalArn: !GetAtt NodeRole.Arn"},
		"eksctl utils associate-iam-oidc-provider": {"AllowedValues: [PodIdentity, IRSA]", "OidcIssuer:"},
		"eksctl create iamserviceaccount": {"ControllerRole:", "ControllerIdentity:", "  Namespace:",
			"  ServiceAccount:", "Default: karpenter"},
		"settings.interruptionQueue=myCluster": {"QueueName: !Ref ClusterName"},
	} {
		if !strings.Contains(have, in) {
			t.Errorf("the script does not have %q", in)
		}
		for _, name := range what {
			if !strings.Contains(template, name) {
				t.Errorf("for %q the template does not have %q", in, name)
			}
		}
	}
	listed := readText(t, commands)
	if found := handedOverCommands(t); found != "" && found != listed {
		t.Errorf("%s is\n%s\nand the documents have\n%s", commands, listed, found)
	}
	section, of := "", ""
	for _, line := range strings.Split(strings.TrimSpace(listed), "\n") {
		name, command, _ := strings.Cut(line, " ")
		if name != of {
			_, section, _ = strings.Cut(have, "document_"+name+"() {")
			section, _, _ = strings.Cut(section, "document_")
			of = name
		}
		_, after, found := strings.Cut(section, command)
		if !found {
			t.Errorf("document %s: the script does not have, or has not at this place, %q", name, command)
			continue
		}
		section = after
	}
}

// handedOverCommands are the commands of all documents, a line each, if these are at hand.
func handedOverCommands(t *testing.T) string {
	t.Helper()
	folder := os.Getenv(handedOver)
	if folder == "" {
		return ""
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s=%s has no documents (%v)", handedOver, folder, err)
	}
	var out strings.Builder
	for _, file := range files {
		for _, command := range commandsOf(readText(t, file)) {
			fmt.Fprintf(&out, "%s %s\n", filepath.Base(file)[:3], command)
		}
	}
	return out.String()
}

// commandsOf are the commands in the shell blocks of a document, each on one line, with $CHART for the chart's address.
func commandsOf(document string) []string {
	first := regexp.MustCompile(`^\s*(\$ )?((helm|kubectl|eksctl|aws|curl|export) |cat <<|[A-Z_]+=)`)
	chart := strings.NewReplacer(" karpenter karpenter/karpenter ", " karpenter $CHART ",
		"'oci://public.ecr.aws/karpenter/karpenter'", "$CHART", "helm … ", "")
	var out []string
	for _, line := range strings.Split(strings.NewReplacer("\\\n", " ", "\t", " ").Replace(document), "\n") {
		if first.MatchString(line) {
			out = append(out, chart.Replace(strings.TrimPrefix(oneLine(line), "$ ")))
		}
	}
	return out
}

// oneLine writes continued lines as one, and one space for several.
func oneLine(text string) string {
	text = strings.NewReplacer("\\\n", " ", "\n#$", "\n").Replace(text)
	return strings.Join(strings.Fields(text), " ")
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
