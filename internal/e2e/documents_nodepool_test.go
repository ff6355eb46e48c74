package e2e

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/iam"
)

// theFourth: NodePools and classes of v1beta1, in the order of the document, with its pods and some of our own where it
// has none.
func (w *documentWorld) theFourth() {
	w.taintedPool()
	w.gpuPool()
	w.poolOfAllTypes()
	w.spotPool()
	w.batchPool()
	w.secondGPUPool()
	w.kubectl("apply", "--validate=strict", "-f", "testdata/documents/fragments.yaml")
	w.says("fragments", "WhenEmpty after 30s, expires 2160h, cpu 1k, memory 1000Gi")
	w.everythingGoes()
}

// tolerating is a deployment of our own whose pods tolerate a taint and ask for labels.
func (w *documentWorld) tolerating(name string, n int32, taint string, ask map[string]string) {
	w.Helper()
	d := w.deployment(name, n, "1")
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: taint, Operator: corev1.TolerationOpExists}}
	d.Spec.Template.Spec.NodeSelector = ask
	w.create(d)
}

// taintedPool: the first NodePool and class of the document, whose taint keeps the document's first pod out.
func (w *documentWorld) taintedPool() {
	w.Helper()
	w.put("003-03-nodepool", "003-04-ec2nodeclass", "003-05-pod")
	w.tolerating("special", 3, "example.com/special-taint", nil)
	w.eventually(w.allRunning(3))
	w.waits("my-app", "default", "example.com/special-taint")
	w.stand(map[string]labels{"special": {
		v1.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "m5.large m5.xlarge c5.large c5.xlarge",
		corev1.LabelArchStable: "amd64",
		corev1.LabelOSStable:   "linux", v1.CapacityTypeLabelKey: "spot", "karpenter.kwok.x-k8s.io/node": "true",
	}})
	w.tainted("default", "example.com/special-taint=true:NoSchedule")
	w.says("default", "WhenEmpty after 30s, expires 720h, cpu 1k")
	class := w.classOf("default")
	for _, i := range w.machines("default") {
		w.likeTheClass(&i, class)
	}
	w.step("the pods of the first NodePool run")
}

// likeTheClass: the image, the role, the disk and the user data are those that the document's class asks for.
func (w *documentWorld) likeTheClass(i *cloud.Instance, class *awsv1.EC2NodeClass) {
	w.Helper()
	if !slices.ContainsFunc(class.Status.AMIs, func(a awsv1.AMI) bool {
		return a.ID == i.Image && strings.HasPrefix(a.Name, "amazon-eks-node-1")
	}) {
		w.Errorf("instance %s has the image %s, and Amazon Linux 2 is %+v", i.ID, i.Image, class.Status.AMIs)
	}
	if !slices.ContainsFunc(w.cloud.IAM.Profiles(), func(p iam.Profile) bool {
		return p.Name == i.Profile && p.Role == "KarpenterNodeRole-my-cluster"
	}) {
		w.Errorf("instance %s acts as %q, which is none of the role of the cluster's nodes: %+v", i.ID, i.Profile,
			w.cloud.IAM.Profiles())
	}
	for _, line := range []string{"/etc/eks/bootstrap.sh my-cluster", "net.ipv4.ip_forward = 1"} {
		if !strings.Contains(string(i.UserData), line) {
			w.Errorf("instance %s does not run %q:\n%s", i.ID, line, i.UserData)
		}
	}
	for _, d := range i.Request.BlockDeviceMappings {
		if ebs := d.Ebs; *d.DeviceName != "/dev/xvda" || *ebs.VolumeSize != 100 || ebs.VolumeType != "gp3" ||
			!*ebs.Encrypted {
			w.Errorf("instance %s has the disk %s %+v", i.ID, *d.DeviceName, ebs)
		}
	}
	if len(i.Volumes) != 1 || i.Volumes[0].SizeGiB != 100 {
		w.Errorf("instance %s has the volumes %+v", i.ID, i.Volumes)
	}
}

// gpuPool: a pool without a nodeClassRef, and a pod that tolerates its taint. The pod that does not still waits.
func (w *documentWorld) gpuPool() {
	w.Helper()
	w.put("003-08-nodepool", "003-09-pod")
	w.eventually(w.runs("gpu-pod"))
	w.stand(map[string]labels{"gpu-pod": {v1.NodePoolLabelKey: "gpu-nodes",
		corev1.LabelInstanceTypeStable: "p3.2xlarge p3.8xlarge"}})
	w.tainted("gpu-nodes", "nvidia.com/gpu=true:NoSchedule")
	if got := w.pool("gpu-nodes").Spec.Template.Spec.NodeClassRef; got.Name != "default" || got.Kind != "EC2NodeClass" {
		w.Errorf("a NodePool without a class uses %+v", got)
	}
	w.waits("my-app", "gpu-nodes", "nvidia.com/gpu")
	w.step("the GPU pod runs")
}

// poolOfAllTypes: with a pool without taints the rest of the document's pods run, each where it asks to.
func (w *documentWorld) poolOfAllTypes() {
	w.Helper()
	w.put("003-06-pod", "003-07-pod", "003-14-pod")
	w.spreadTwoMore()
	w.put("003-11-nodepool")
	w.eventually(w.runs("my-app", "gpu-workload", "compute-heavy", "spread-me", "spread-me-2", "spread-me-3"))
	anywhere := "us-west-2a us-west-2b us-west-2c"
	w.stand(map[string]labels{
		"my-app": {v1.NodePoolLabelKey: "multi-zone", corev1.LabelArchStable: "amd64",
			corev1.LabelTopologyZone: anywhere},
		"gpu-workload": {v1.NodePoolLabelKey: "multi-zone", corev1.LabelArchStable: "amd64",
			corev1.LabelInstanceTypeStable: "p3.2xlarge", corev1.LabelTopologyZone: anywhere},
		"compute-heavy": {v1.NodePoolLabelKey: "multi-zone", corev1.LabelInstanceTypeStable: "c5.2xlarge c5.4xlarge " +
			"c5.9xlarge", v1.CapacityTypeLabelKey: "on-demand"},
		"spread-me": {v1.NodePoolLabelKey: "multi-zone", corev1.LabelTopologyZone: anywhere},
	})
	w.spread()
	w.says("multi-zone", "WhenEmptyOrUnderutilized after 0s, expires 720h")
	w.step("the document's pods run")
}

// spread makes sure that the three pods that spread do. kube-scheduler counts the zones that have a node when it looks,
// so the third pod may have found two of them.
func (w *documentWorld) spread() {
	w.Helper()
	zones := map[string]int{}
	for _, p := range w.pods() {
		for _, n := range w.nodes() {
			if p.Labels["app"] == "my-app" && n.Name == p.Spec.NodeName {
				zones[n.Labels[corev1.LabelTopologyZone]]++
			}
		}
	}
	if len(zones) < 2 || slices.Max(slices.Collect(maps.Values(zones))) > 2 {
		w.Errorf("three pods that spread over zones are in %v", zones)
	}
}

// spreadTwoMore makes two more pods like the document's that spreads: one alone has nothing to spread from.
func (w *documentWorld) spreadTwoMore() {
	w.Helper()
	var one corev1.Pod
	w.must(w.c.Get(w.ctx, keyOf(w.lab.Namespace(), "spread-me"), &one))
	for _, name := range []string{"spread-me-2", "spread-me-3"} {
		more := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: name, Labels: one.Labels}}
		more.Spec.TopologySpreadConstraints = one.Spec.TopologySpreadConstraints
		more.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx"}}
		w.create(more)
	}
}

// spotPool: spot instances of four types, which go as soon as they are empty.
func (w *documentWorld) spotPool() {
	w.Helper()
	w.put("003-10-nodepool")
	w.says("spot-nodes", "WhenEmpty after 0s, expires 720h")
	w.create(w.pod("cheap", "1", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{v1.NodePoolLabelKey: "spot-nodes"}
	}))
	w.eventually(w.runs("cheap"))
	w.stand(map[string]labels{"cheap": {v1.CapacityTypeLabelKey: "spot",
		corev1.LabelInstanceTypeStable: "m5.large m5.xlarge m4.large m4.xlarge"}})
	for _, i := range w.machines("spot-nodes") {
		if i.Market != cloud.Spot {
			w.Errorf("instance %s is bought %s", i.ID, i.Market)
		}
	}
	w.kubectl("delete", "pod", "cheap", "--now")
	w.eventually(w.without("spot-nodes"))
	w.step("the spot node has come and gone")
}

// batchPool: tainted spot instances for batch jobs, which go 10 s after the last of them.
func (w *documentWorld) batchPool() {
	w.Helper()
	w.put("003-13-nodepool")
	w.says("batch-processing", "WhenEmpty after 10s, expires 720h")
	w.create(w.pod("job", "1", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"workload-type": "batch"}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "batch-only", Value: "true"}}
	}))
	w.eventually(w.runs("job"))
	w.stand(map[string]labels{"job": {
		v1.NodePoolLabelKey: "batch-processing", v1.CapacityTypeLabelKey: "spot",
		corev1.LabelInstanceTypeStable: "c5.large c5.xlarge c5.2xlarge c5.4xlarge",
	}})
	w.tainted("batch-processing", "batch-only=true:NoSchedule")
	e := w.record()
	leaving := time.Now()
	w.kubectl("delete", "pod", "job", "--now")
	w.eventually(w.without("batch-processing"))
	if gone := e.goneAt("batch-processing").Sub(leaving); gone < 9*time.Second {
		w.Errorf("the empty node of the batch jobs went after %s, want at least 10s", gone)
	}
	w.step("the batch node has come and gone")
}

// secondGPUPool: the pool of the same name further down in the document, whose nodeClassRef stands directly under spec
// and has only a name. The node of the first one is replaced.
func (w *documentWorld) secondGPUPool() {
	w.Helper()
	w.put("003-12-nodepool-ec2nodeclass")
	if got := w.pool("gpu-nodes").Spec.Template.Spec.NodeClassRef; got.Name != "gpu-nodeclass" ||
		got.Kind != "EC2NodeClass" {
		w.Errorf("the second gpu-nodes uses %+v", got)
	}
	w.create(w.pod("trains", "1", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"node-type": "gpu"}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": apiresource.MustParse("1")}
	}))
	w.eventually(w.runs("trains"))
	w.stand(map[string]labels{"trains": {
		v1.NodePoolLabelKey: "gpu-nodes", v1.CapacityTypeLabelKey: "on-demand",
		corev1.LabelInstanceTypeStable: "p3.2xlarge p3.8xlarge p3.16xlarge",
	}})
	w.eventually(func() string {
		for _, n := range w.nodes() {
			if n.Labels[v1.NodePoolLabelKey] == "gpu-nodes" && n.Labels["node-type"] != "gpu" {
				return "node " + n.Name + " of the pool as it was before is still there"
			}
		}
		return ""
	})
	for _, i := range w.machines("gpu-nodes") {
		if !strings.Contains(string(i.UserData), "sudo yum install -y nvidia-driver nvidia-docker2") {
			w.Errorf("instance %s does not install the driver:\n%s", i.ID, i.UserData)
		}
	}
	w.step("the second GPU pool has taken the first one's place")
}

// without says what is left of a pool.
func (w *documentWorld) without(pool string) func() string {
	return func() string {
		for _, c := range w.claims() {
			if c.Labels[v1.NodePoolLabelKey] == pool {
				return "the NodeClaim " + c.Name + " is still there"
			}
		}
		return ""
	}
}

// everythingGoes: without pods no pool keeps a node, and that of the first NodePool stays for its 30 s.
func (w *documentWorld) everythingGoes() {
	w.Helper()
	w.empties("default", 30*time.Second, func() {
		w.kubectl("delete", "deployments", "--all")
		w.kubectl("delete", "pods", "--all", "--now")
	})
	w.step("nothing is left")
}
