package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func keyOf(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// ready waits until the Provisioner of a document is.
func (w *documentWorld) ready() {
	w.Helper()
	w.is(provisioner("default"), "Ready=True Ready")
}

// empties takes all pods away and makes sure that the nodes go, but none before its time.
func (w *documentWorld) empties(pool string, after time.Duration, leave func()) {
	w.Helper()
	e := w.record()
	leaving := time.Now()
	leave()
	w.eventually(w.nothingLeft)
	// A NodeClaim keeps the seconds of the time at which its last pod has left.
	if gone := e.goneAt(pool).Sub(leaving); gone < after-time.Second {
		w.Errorf("the first empty node went %s after the pods began to leave, want at least %s", gone, after)
	}
}

// theFirst: ten pods get nodes of two types in two zones; the pods leave, and 30 s later the nodes. Of the nodes of ten
// others one is deleted by hand.
func (w *documentWorld) theFirst() {
	w.put("000-01-provisioner")
	w.ready()
	w.says("default", "WhenEmpty after 30s, expires Never")
	w.create(w.deployment("inflate", 10, "1"))
	w.eventually(w.allRunning(10))
	w.step("10 pods run")
	asked := map[string]labels{"inflate": {
		corev1.LabelInstanceTypeStable: "m5.large m5.2xlarge", corev1.LabelTopologyZone: "us-east-1a us-east-1b",
		corev1.LabelArchStable: "arm64 amd64",
		// both capacity types are allowed; spot is cheaper
		v1.CapacityTypeLabelKey: "spot", corev1.LabelOSStable: "linux",
	}}
	w.stand(asked)
	for _, i := range w.machines("default") {
		if !strings.HasSuffix(i.Profile, "KarpenterNodeInstanceProfile-eks-karpenter-demo") {
			w.Errorf("instance %s acts as %s", i.ID, i.Profile)
		}
	}
	w.empties("default", 30*time.Second, func() { w.inflate(0) })
	w.step("the nodes are gone")
	w.inflate(10)
	w.eventually(w.allRunning(10))
	w.deletesANode()
	w.eventually(w.allRunning(10))
	w.stand(asked)
	w.kubectl("delete", "deployment", "inflate")
	w.eventually(w.nothingLeft)
}

// deletesANode deletes a node with kubectl, which waits until the node is drained and its instance ended.
func (w *documentWorld) deletesANode() {
	w.Helper()
	node := w.nodes()[0]
	w.kubectl("delete", "node", node.Name)
	for _, p := range w.pods() {
		if p.Spec.NodeName == node.Name && p.DeletionTimestamp == nil {
			w.Errorf("pod %s is still on the node that was deleted", p.Name)
		}
	}
	for _, i := range w.alive() {
		if strings.HasSuffix(node.Spec.ProviderID, i.ID) {
			w.Errorf("the node that was deleted is gone, and its instance %s is %s", i.ID, i.State)
		}
	}
	w.step("a node was deleted")
}

// theSecond: a taint keeps pods out that don't tolerate it; nodes carry a label; they are to be replaced after 30 days.
func (w *documentWorld) theSecond() {
	w.put("001-02-provisioner")
	w.ready()
	special := w.deployment("special", 2, "1")
	special.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/special-taint",
		Operator: corev1.TolerationOpExists}}
	w.create(special, w.pod("plain", "1"))
	w.eventually(w.allRunning(2))
	w.waits("plain", "default", "example.com/special-taint")
	w.stand(map[string]labels{"special": {
		corev1.LabelInstanceTypeStable: "m5.large m5.2xlarge", corev1.LabelTopologyZone: "us-west-2a us-west-2b",
		corev1.LabelArchStable:  "arm64 amd64",
		v1.CapacityTypeLabelKey: "spot", "billing-team": "my-team",
	}})
	w.tainted("default", "example.com/special-taint:NoSchedule")
	w.says("default", "WhenEmpty after 30s, expires 720h")
	w.step("the pods of team my-team run")
	w.empties("default", 30*time.Second, func() { w.kubectl("delete", "deployment", "special") })
	w.step("the nodes are gone")
}

// theFifth: the Provisioner that says nothing but an instance profile, and the deployment that is scaled to 15.
func (w *documentWorld) theFifth() {
	w.refusesMisspelling()
	w.put("004-15-provisioner", "004-16-deployment")
	w.ready()
	w.says("default", "WhenEmpty after 30s, expires Never")
	w.kubectl("scale", "deployment", "inflate", "--replicas", "15")
	w.eventually(w.allRunning(15))
	w.stand(map[string]labels{"inflate": {v1.CapacityTypeLabelKey: "on-demand", corev1.LabelArchStable: "amd64",
		corev1.LabelOSStable: "linux"}})
	for _, i := range w.machines("default") {
		if !strings.HasSuffix(i.Profile, "KarpenterNodeInstanceProfile-my-cluster") {
			w.Errorf("instance %s acts as %s", i.ID, i.Profile)
		}
	}
	w.step("15 pods run")
	w.empties("default", 30*time.Second, func() { w.kubectl("delete", "deployment", "inflate") })
	w.step("the nodes are gone")
}

// refusesMisspelling makes sure that fields are validated strictly: otherwise that all manifests apply would mean
// little.
func (w *documentWorld) refusesMisspelling() {
	w.Helper()
	misspelt := filepath.Join(w.TempDir(), "misspelt.yaml")
	w.must(os.WriteFile(misspelt, []byte("apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: "+
		"wrong}\nspec: {provider: {}, ttlSecondAfterEmpty: 30}\n"), 0o600))
	if out, err := w.tryKubectl("apply", "--validate=strict", "-f", misspelt); err == nil || !strings.Contains(out,
		`unknown field "spec.ttlSecondAfterEmpty"`) {
		w.Errorf("a field that is not known: %v\n%s", err, out)
	}
}
