package family_test

import (
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// FuzzUserData merges any user data with ours, for every family. Nothing panics; what comes out can be read by whoever
// reads it on the node, and has our part in it. A label or a taint with odd characters does not get out of its quotes.
func FuzzUserData(f *testing.F) {
	for _, text := range []string{
		"", "#!/bin/bash\necho hello\n", "echo 'no shebang'", "[settings.kubernetes]\nmax-pods = 5\n", "settings = 3",
		"[settings\n",
		"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: " +
			"text/x-shellscript\n\n#!/bin/sh\necho\n--b--\n",
		"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: " +
			"application/node.eks.aws\n\nkind: NodeConfig\napiVersion: node.eks.aws/v1alpha1\nspec:\n  kubelet:\n    " +
			"config:\n      maxPods: 3\n--b--\n",
		"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    name: other\n", "kind: [",
		"<powershell>\nWrite-Host\n</powershell>", "Content-Type: text/plain\n\n",
		"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"\"\n\n", "\x1f\x8b\x08", "a: &a [*a]", "--//\n",
	} {
		f.Add(text, "pears", uint8(0))
		f.Add(text, "$(reboot)'\"`\\", uint8(1))
	}
	families := []string{awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023, awsv1.AMIFamilyBottlerocket,
		awsv1.AMIFamilyWindows2022, awsv1.AMIFamilyCustom}
	f.Fuzz(func(t *testing.T, text, value string, which uint8) {
		name := families[int(which)%len(families)]
		n := plain()
		n.UserData = text
		n.Labels["example.com/odd"] = value
		n.Taints = []corev1.Taint{{Key: "example.com/odd", Value: value, Effect: corev1.TaintEffectNoSchedule}}
		out, err := named(t, name).UserData(n)
		if err != nil {
			return
		}
		again, err := named(t, name).UserData(n)
		if err != nil || again != out {
			t.Fatalf("the same node gets other bytes: %v", err)
		}
		if name == awsv1.AMIFamilyCustom {
			if out != text {
				t.Errorf("user data of the family Custom is changed")
			}
			return
		}
		checkMerged(t, name, out)
	})
}

// checkMerged reads merged user data as the node would.
func checkMerged(t *testing.T, name, out string) {
	t.Helper()
	switch name {
	case awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023:
		ours := 0
		for _, part := range archive(t, out) {
			switch {
			case name == awsv1.AMIFamilyAL2 && strings.Contains(part, "/etc/eks/bootstrap.sh") && strings.Contains(part,
				"orchard"):
				ours++
			case name == awsv1.AMIFamilyAL2023 && isOurConfig(part):
				ours++
			}
		}
		if ours == 0 {
			t.Errorf("our part is missing from:\n%s", out)
		}
	case awsv1.AMIFamilyBottlerocket:
		var tree struct {
			Settings struct {
				Kubernetes struct {
					ClusterName string              `toml:"cluster-name"`
					Server      string              `toml:"api-server"`
					Taints      map[string][]string `toml:"node-taints"`
				} `toml:"kubernetes"`
			} `toml:"settings"`
		}
		if err := toml.Unmarshal([]byte(out), &tree); err != nil {
			t.Fatalf("what comes out is not TOML: %v\n%s", err, out)
		}
		k := tree.Settings.Kubernetes
		if k.ClusterName != "orchard" || k.Server != plain().Endpoint || len(k.Taints[v1.UnregisteredTaintKey]) == 0 {
			t.Errorf("our settings are missing from:\n%s", out)
		}
	default:
		if !strings.Contains(out, "<powershell>") || !strings.Contains(out, "orchard") || !strings.Contains(out,
			v1.UnregisteredTaintKey) {
			t.Errorf("our part is missing from:\n%s", out)
		}
	}
}

// archive reads the parts of a MIME message.
func archive(t *testing.T, text string) []string {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatalf("what comes out is not a message: %v\n%s", err, text)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		t.Fatalf("what comes out is %q (%v)\n%s", kind, err, text)
	}
	var out []string
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("the parts can't be read: %v\n%s", err, text)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			t.Fatalf("a part can't be read: %v", err)
		}
		out = append(out, string(body))
	}
}

// isOurConfig reports whether a part is the NodeConfig with which a node finds its cluster.
func isOurConfig(part string) bool {
	var c struct {
		Kind string `json:"kind"`
		Spec struct {
			Cluster struct {
				Name     string `json:"name"`
				Endpoint string `json:"apiServerEndpoint"`
			} `json:"cluster"`
		} `json:"spec"`
	}
	return yaml.Unmarshal([]byte(part), &c) == nil && c.Kind == "NodeConfig" && c.Spec.Cluster.Name == "orchard" &&
		c.Spec.Cluster.Endpoint == plain().Endpoint
}
