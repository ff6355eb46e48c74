package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

// The node n is on its way out because its two pods had room on the node other. Somebody has taken half of that room
// meanwhile.
func TestRoomOfAMoveIsTrusted(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *scene)
		// made are the pods that new nodes are made for; seated those that have a place on a node that is there.
		made, seated []string
	}{
		{"nothing is bought for those that leave to save money", func(*scene) {}, nil, []string{"p1 other"}},
		{"who leaves for another reason gets a node", func(x *scene) {
			x.claim.Move = "drifted-x"
		}, []string{"p2"}, []string{"p1 other"}},
		{"a pod that waits gets a node, since the place is kept", func(x *scene) {
			x.waits("w")
		}, []string{"w"}, []string{"p1 other"}},
		{"another node goes for another reason", func(x *scene) {
			d := x.second()
			d.Move, d.Deleting = "drifted-x", x.s.Now
			x.s.Pods[1].Class = sized(2000, 0)
			a := *x.s.Pods[0]
			a.UID, a.Name, a.Node = "a", "a", "m"
			x.s.Pods = append([]*cluster.Pod{&a}, x.s.Pods...)
			x.s.Nodes[1].Allocatable[resource.CPU] = 4000
		}, nil, []string{"a other", "p2 other"}},
		{"there is room for all", func(x *scene) {
			x.s.Nodes[1].Allocatable[resource.CPU] = 4000
		}, nil, []string{"p1 other", "p2 other"}},
	} {
		x := newScene()
		x.s.Pods = nil
		for _, name := range []string{"p1", "p2"} {
			p := *x.p
			p.UID, p.Name = name, name
			x.s.Pods = append(x.s.Pods, &p)
		}
		thief := *x.p
		thief.UID, thief.Name, thief.Node = "thief", "thief", "other"
		x.s.Pods = append(x.s.Pods, &thief)
		x.s.Nodes[1].Allocatable[resource.CPU] = 2000
		x.fenced(command.Underutilized)
		x.claim.Deleting = x.s.Now
		c.change(x)
		p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
		var made, seated []string
		for _, claim := range creates(&p) {
			for _, pod := range claim.Pods {
				made = append(made, pod.Name)
			}
		}
		for _, a := range p.Placement.Assigned {
			seated = append(seated, fmt.Sprint(a.Pod.Name, " ", a.Host))
		}
		slices.Sort(seated)
		if !slices.Equal(made, c.made) || !slices.Equal(seated, c.seated) {
			t.Errorf("%s: nodes are made for %v and places found for %v, want %v and %v", c.name, made, seated,
				c.made, c.seated)
		}
	}
}

// waits adds a pod that waits for a place.
func (x *scene) waits(name string) {
	w := *x.w
	w.UID, w.Name = name, name
	x.s.Pods = append(x.s.Pods, &w)
	slices.SortFunc(x.s.Pods, func(a, b *cluster.Pod) int { return strings.Compare(a.UID, b.UID) })
}
