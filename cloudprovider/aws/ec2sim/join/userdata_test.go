package join

import (
	"bytes"
	"compress/gzip"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const al2Data = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo "/etc/eks/bootstrap.sh not-this-one" # nor /etc/eks/bootstrap.sh this

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash -xe
exec > >(tee /var/log/user-data.log) 2>&1
/etc/eks/bootstrap.sh 'lab' --apiserver-endpoint 'https://x' --b64-cluster-ca 'eA==' \
--use-max-pods false \
--local-disks raid0 \
--kubelet-extra-args '--node-labels="team=a,karpenter.sh/nodepool=default" ` +
	`--register-with-taints="karpenter.sh/unregistered:NoExecute,team=a:NoSchedule" --max-pods=58 ` +
	`--pods-per-core 10 --kube-reserved="cpu=100m,memory=1Gi" --system-reserved=cpu=50m ` +
	`--eviction-hard="memory.available<5%,nodefs.available<2Gi"'
--//--
`

const al2023Data = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUNDARY"

--BOUNDARY
Content-Type: application/node.eks.aws

---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: 20
      podsPerCore: 10
      systemReserved: {cpu: 50m}
    flags: ["--node-labels=team=a,mine=1"]
--BOUNDARY
Content-Type: text/x-shellscript

echo hello
--BOUNDARY
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: lab, apiServerEndpoint: https://x, certificateAuthority: eA==, cidr: 10.100.0.0/16}
  instance: {localStorage: {strategy: RAID0}}
  kubelet:
    config:
      maxPods: 58
      kubeReserved: {cpu: 100m, memory: 1Gi}
      evictionHard: {memory.available: 5%, nodefs.available: 2Gi}
      registerWithTaints:
      - {key: karpenter.sh/unregistered, effect: NoExecute}
      - {key: team, value: a, effect: NoSchedule}
    flags: ["--node-labels=karpenter.sh/nodepool=default"]
--BOUNDARY--
`

const bottlerocketData = `
[settings.kubernetes]
cluster-name = "lab"
api-server = "https://x"
cluster-certificate = "eA=="
max-pods = 58
[settings.kubernetes.node-labels]
"team" = "a"
"karpenter.sh/nodepool" = "default"
[settings.kubernetes.node-taints]
"karpenter.sh/unregistered" = [":NoExecute"]
"team" = "a:NoSchedule"
[settings.kubernetes.kube-reserved]
cpu = "100m"
memory = "1Gi"
[settings.kubernetes.system-reserved]
cpu = "50m"
[settings.kubernetes.eviction-hard]
"memory.available" = "5%"
"nodefs.available" = "2Gi"
[settings.bootstrap-commands.disks]
commands = [["apiclient", "ephemeral-storage", "init"], ` +
	`["apiclient", "ephemeral-storage", "bind", "--dirs", "/var/lib/kubelet"]]
`

const windowsData = `<powershell>
Write-Host "hello"
& "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1" ` +
	`-EKSClusterName 'lab' -APIServerEndpoint 'https://x' -Base64ClusterCA 'eA==' ` +
	`-KubeletExtraArgs '--node-labels="team=a,karpenter.sh/nodepool=default" ` +
	`--register-with-taints="karpenter.sh/unregistered:NoExecute,team=a:NoSchedule" --max-pods=58 ` +
	`--kube-reserved="cpu=100m,memory=1Gi" --system-reserved="cpu=50m" ` +
	`--eviction-hard="memory.available<5%,nodefs.available<2Gi"' -DNSClusterIP '10.100.0.10'
</powershell>
`

// everything is what all of the texts above say.
func everything() settings {
	return settings{
		Cluster: "lab",
		Labels:  map[string]string{"team": "a", "karpenter.sh/nodepool": "default"},
		Taints: []corev1.Taint{
			{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}, {Key: "team", Value: "a",
				Effect: corev1.TaintEffectNoSchedule},
		},
		MaxPods: 58, KubeReserved: map[string]string{"cpu": "100m", "memory": "1Gi"},
		SystemReserved: map[string]string{"cpu": "50m"},
		EvictionHard:   map[string]string{"memory.available": "5%", "nodefs.available": "2Gi"},
	}
}

func sorted(s settings) settings {
	slices.SortFunc(s.Taints, func(a, b corev1.Taint) int { return strings.Compare(a.Key, b.Key) })
	return s
}

func TestReadUserData(t *testing.T) {
	for _, c := range []struct {
		image system
		text  string
		also  func(*settings)
	}{
		{al2, al2Data, func(s *settings) { s.RAID0, s.PodsPerCore = true, 10 }},
		{al2023, al2023Data, func(s *settings) { s.RAID0, s.PodsPerCore, s.Labels["mine"] = true, 10, "1" }},
		{bottlerocket, bottlerocketData, func(s *settings) { s.RAID0 = true }},
		{windows, windowsData, func(*settings) {}},
	} {
		want := everything()
		c.also(&want)
		for name, image := range map[string]system{"its image": c.image, "an unknown image": unknown} {
			got, err := read([]byte(c.text), image)
			if err != nil {
				t.Errorf("%s with %s: %v", c.image, name, err)
			} else if got = sorted(got); !reflect.DeepEqual(got, want) {
				t.Errorf("%s with %s: got\n%+v, want\n%+v", c.image, name, got, want)
			}
		}
	}
}

func TestCompressedUserData(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(al2023Data)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := read(b.Bytes(), al2023)
	if err != nil || got.MaxPods != 58 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUserDataThatJoinsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		image system
		text  string
		want  string
	}{
		"empty":                       {al2023, "", "there is no NodeConfig"},
		"of another image":            {al2023, al2Data, "there is no NodeConfig"},
		"a script that does not join": {al2, "#!/bin/bash\necho hello", "no script calls"},
		"no service range": {al2023, strings.Replace(al2023Data, ", cidr: 10.100.0.0/16", "", 1),
			"cidr is missing"},
		"no server": {bottlerocket, strings.Replace(bottlerocketData, "api-server", "api-serv", 1),
			"api-server is missing"},
		"broken TOML":               {bottlerocket, "[settings", "reading TOML"},
		"a taint without an effect": {al2, strings.Replace(al2Data, "team=a:NoSchedule", "team=a", 1), "no effect"},
		"an unknown effect": {bottlerocket, strings.Replace(bottlerocketData, "a:NoSchedule", "a:Never", 1),
			"unknown effect"},
		"a label that is Kubernetes'": {windows, strings.Replace(windowsData, "team=a,",
			"node-role.kubernetes.io/worker=1,", 1), "the kubelet does not start"},
		"no element": {windows, "Start-EKSBootstrap.ps1 -EKSClusterName 'lab'",
			"no <powershell> element"},
	} {
		_, err := read([]byte(c.text), c.image)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestLabelsThatAKubeletMaySet(t *testing.T) {
	for label, ok := range map[string]bool{
		"team": true, "karpenter.sh/nodepool": true, "karpenter.k8s.aws/instance-family": true,
		"node.kubernetes.io/mine":     true,
		"topology.kubernetes.io/zone": true, "kwok.x-k8s.io/node": true, "node-role.kubernetes.io/worker": false,
		"x.k8s.io/y": false,
	} {
		if err := checkLabels(map[string]string{label: "x"}); (err == nil) != ok {
			t.Errorf("%s: %v", label, err)
		}
	}
}
