package sim

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

func keptFor(move string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[cluster.KeptForAnnotation] = move }
}

// TestRoomElsewhere: a closed node is room for the pods of the move that it is kept for, and for others only if that
// goes now.
func TestRoomElsewhere(t *testing.T) {
	for _, c := range []struct {
		name, move string
		change     func(*corev1.Node)
		want       bool
	}{
		{"open", "", func(n *corev1.Node) { n.Spec.Unschedulable, n.Annotations = false, nil }, true},
		{"closed", "mine", func(n *corev1.Node) { n.Annotations = nil }, false},
		{"kept for the move", "mine", func(*corev1.Node) {}, true},
		{"kept for another move", "other", func(*corev1.Node) {}, false},
		{"kept for another move, which goes now", "other", keptFor("departing"), true},
		{"kept for another move, and opened now", "other", func(n *corev1.Node) { n.Name = "opening" }, true},
		{"kept for another move, which is over", "other", keptFor("over"), true},
		{"kept, and the node goes in none", "", func(*corev1.Node) {}, false},
		{"kept, and not up", "mine", func(n *corev1.Node) {
			n.Labels = map[string]string{v1.NodeRegisteredLabelKey: "true"}
		}, false},
		{"kept, and too small", "mine", func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourceCPU] = apiresource.MustParse("1m")
		}, false},
		{"kept, and on its way out", "mine", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{v1.DisruptedNoScheduleTaint()}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(1, Options{})
			set := s.newSet("app")
			s.store.create(set)
			s.makePod(set)
			pod := list[*corev1.Pod](s.store, pods)[0]
			edit(s.store, pods, keyOf(pod), pod.UID, func(p *corev1.Pod) {
				p.Spec.NodeName, p.Spec.NodeSelector, p.Spec.Tolerations, p.Annotations = "old", nil, nil, nil
			})
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new",
				Annotations: map[string]string{cluster.KeptForAnnotation: "mine"},
				Labels:      map[string]string{v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true"}}}
			node.Spec.Unschedulable = true
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("64"),
				corev1.ResourceMemory: apiresource.MustParse("256Gi"),
				corev1.ResourcePods:   apiresource.MustParse("20")}
			c.change(node)
			s.store.create(node)
			s.store.create(&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
				Name: "going", Annotations: map[string]string{cluster.MoveAnnotation: "mine"},
			}})
			r := s.start()
			r.departs, r.opens = map[string]bool{"departing": true}, map[string]bool{"opening": true}
			if got := r.roomElsewhere("old", c.move); got != c.want {
				t.Errorf("room elsewhere is %v, want %v", got, c.want)
			}
		})
	}
}

// TestWhatAStaleReplicaEndsCounts: a node of a move that a stale replica has ended counts among those that go, so that
// what takes the place of all is compared with all. What the leader ends then is still judged.
func TestWhatAStaleReplicaEndsCounts(t *testing.T) {
	for name, c := range map[string]struct {
		byStale, byLeader bool // who has ended the first node
		made              int
		// its machine had died before; a pod comes to what was made before the second node is ended
		died, comes bool
		want        bool // the judge has nothing to say
	}{
		"a stale replica has ended one of two":               {byStale: true, made: 2, want: true},
		"the leader has ended one of two":                    {byLeader: true, made: 2, want: true},
		"the one node has a replacement":                     {made: 1, want: true},
		"the one node has two":                               {made: 2},
		"a stale replica has ended one, three come":          {byStale: true, made: 3},
		"the leader has ended one, three come":               {byLeader: true, made: 3},
		"a stale replica has ended one that had died":        {byStale: true, made: 3, died: true, want: true},
		"a stale replica has ended one, and its pods are up": {byStale: true, made: 3, comes: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, r, _ := givenUp(t)
			s.judge.left = map[string]float64{}
			first, second := s.joinsMove("made"), s.joinsMove("stays")
			for i := range c.made { // each costs as much as each of the nodes that go
				s.store.create(&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("new-%d", i), Annotations: map[string]string{cluster.ReplacesAnnotation: theMove},
				}, Status: second.Status})
			}
			s.store.remove(first)
			if c.died {
				s.cloud.machines = s.cloud.machines[:1]
			}
			if r.stale = c.byStale; c.byStale || c.byLeader {
				s.judge.leaving(r, first, command.Drifted) // its price counts, and nothing is judged
			}
			if c.comes {
				set := s.newSet("app")
				s.store.create(set)
				s.makePod(set)
				pod := list[*corev1.Pod](s.store, pods)[0]
				edit(s.store, pods, keyOf(pod), pod.UID, func(p *corev1.Pod) {
					p.Spec.NodeName = second.Status.NodeName
				})
			}
			r.stale = false
			s.judge.leaving(r, second, command.Underutilized)
			if (s.failure == nil) != c.want {
				t.Errorf("the judge says %v", s.failure)
			}
		})
	}
}

// joinsMove makes a claim one of those that go in the move.
func (s *Sim) joinsMove(name string) *v1.NodeClaim {
	claim, _ := find[*v1.NodeClaim](s.store, claims, name)
	edit(s.store, claims, name, claim.UID, func(c *v1.NodeClaim) {
		c.Annotations = map[string]string{cluster.MoveAnnotation: theMove}
	})
	claim, _ = find[*v1.NodeClaim](s.store, claims, name)
	return claim
}
