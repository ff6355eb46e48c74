package sim

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// A node was made for a pod of 1 CPU on a machine that has 4. It has lost its room if the pod does not fit any more
// because of what nobody could reckon with when the node was decided on.
func TestWhichNodesLoseTheirRoom(t *testing.T) {
	const early, late, mine = -time.Minute, time.Second, "new"
	type daemon struct {
		made time.Duration // after the node was decided on
		cpu  int64
		node string // where its pod is
	}
	for name, c := range map[string]struct {
		daemons []daemon
		has     string // of CPUs, by the node
		want    bool
	}{
		"nothing has come":                         {nil, "4", false},
		"a DaemonSet of this moment fills it":      {[]daemon{{late, 3500, mine}}, "4", true},
		"several together fill it":                 {[]daemon{{late, 2000, mine}, {late, 1500, mine}}, "4", true},
		"there is room beside it":                  {[]daemon{{late, 2900, mine}}, "4", false},
		"its pod is on another node":               {[]daemon{{late, 3500, "other"}}, "4", false},
		"it could have been reckoned with":         {[]daemon{{early, 3500, mine}}, "4", false},
		"another that is too small has come since": {[]daemon{{early, 3500, mine}, {late, 100, mine}}, "4", false},
		"it is the last straw":                     {[]daemon{{early, 2900, mine}, {late, 200, mine}}, "4", true},
		"no machine has room for the pod beside it": {[]daemon{{early, 3500, mine}, {early, 12000, "other"}},
			"4", true},
		"none has, but on this one the pod fits": {[]daemon{{early, 1000, mine}, {early, 15000, "other"}},
			"4", false},
		"an agent has shrunk it":                    {nil, "500m", true},
		"an agent has shrunk it, and the pod fits":  {nil, "1", false},
		"shrunk, and a pod of a DaemonSet fills it": {[]daemon{{early, 1000, mine}}, "1500m", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(1, Options{})
			v, now := s.judge.unused, s.clock.now.Truncate(time.Second)
			room := func(cpu string) corev1.ResourceList {
				return corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse(cpu),
					corev1.ResourceMemory: apiresource.MustParse("16Gi"),
					corev1.ResourcePods:   apiresource.MustParse("20")}
			}
			m := &machine{node: mine, joined: true}
			m.instance.ClaimUID, m.instance.Allocatable = "claim", room("4")
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: mine}}
			node.Status.Allocatable = room(c.has)
			s.store.create(node)
			set := s.newSet("app")
			set.Spec.Template.Spec.Containers[0].Resources.Requests =
				corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("1"),
					corev1.ResourceMemory: apiresource.MustParse("1Gi")}
			s.store.create(set)
			v.wants(set)
			var known []*appsv1.DaemonSet
			for _, d := range c.daemons {
				ds := s.makeDaemonSet("", d.cpu)
				ds.CreationTimestamp = metav1.NewTime(now.Add(d.made))
				if d.made < 0 {
					known = append(known, ds)
				}
				pod := daemonPod(ds, d.node)
				pod.Name, pod.Spec.NodeName = ds.Name, d.node
				s.store.create(pod)
			}
			v.madeAt["claim"], v.daemons["claim"] = now, known
			if got := v.losesRoom(types.UID(set.UID), m); got != c.want {
				t.Errorf("it has lost its room: %v, want %v", got, c.want)
			}
		})
	}
}

// The same before the machine has joined: DaemonSets that are made meanwhile fill it if they come before the pod.
func TestWhichMachinesAreToLoseTheirRoom(t *testing.T) {
	const early, late = -time.Minute, time.Second
	type daemon struct {
		made     time.Duration // after the node was decided on
		cpu      int64
		priority string
	}
	for name, c := range map[string]struct {
		daemons []daemon
		taint   bool // nobody tolerates it
		want    bool
	}{
		"no DaemonSet":                     {nil, false, false},
		"one that comes first":             {[]daemon{{late, 3500, "system"}}, false, true},
		"one that comes first and leaves":  {[]daemon{{late, 2900, "system"}}, false, false},
		"one of the pod's priority":        {[]daemon{{late, 3500, ""}}, false, false},
		"one that is larger than all":      {[]daemon{{late, 4500, "system"}}, false, false},
		"a larger one leaves it a smaller": {[]daemon{{late, 4500, "system"}, {late, 3500, "system"}}, false, true},
		"one that was known":               {[]daemon{{early, 3500, "system"}}, false, false},
		"one more than was known":          {[]daemon{{early, 2000, "system"}, {late, 1500, "system"}}, false, true},
		"one that the taint keeps away":    {[]daemon{{late, 3500, "system"}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(1, Options{})
			v, now := s.judge.unused, s.clock.now.Truncate(time.Second)
			claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}}
			if c.taint {
				claim.Spec.Taints = []v1.Taint{{Key: "for", Value: "others", Effect: corev1.TaintEffectNoSchedule}}
			}
			s.store.create(claim)
			claim, _ = find[*v1.NodeClaim](s.store, claims, "claim")
			m := &machine{node: "new"}
			m.instance.ClaimUID = string(claim.UID)
			m.instance.Allocatable = corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("4"),
				corev1.ResourceMemory: apiresource.MustParse("16Gi"), corev1.ResourcePods: apiresource.MustParse("20")}
			set := s.newSet("app")
			set.Spec.Template.Spec.Containers[0].Resources.Requests =
				corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("1"),
					corev1.ResourceMemory: apiresource.MustParse("1Gi")}
			s.store.create(set)
			v.wants(set)
			var known []*appsv1.DaemonSet
			for _, d := range c.daemons {
				ds := s.makeDaemonSet(d.priority, d.cpu)
				ds.CreationTimestamp = metav1.NewTime(now.Add(d.made))
				if d.made < 0 {
					known = append(known, ds)
				}
			}
			v.madeAt[claim.UID], v.daemons[claim.UID] = now, known
			if got := v.losesRoom(types.UID(set.UID), m); got != c.want {
				t.Errorf("it is to lose its room: %v, want %v", got, c.want)
			}
		})
	}
}
