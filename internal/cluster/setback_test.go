package cluster

import (
	"testing"
	"time"
)

// A new node that something closes to pods is kept for a while: whatever closes it may go by itself.
func TestWhatMayClear(t *testing.T) {
	up := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	own := Taint{Key: "team", Value: "a", Effect: NoSchedule}
	c := &Claim{Taints: []Taint{own}, Conditions: []Condition{{Type: Initialized, Status: True, Since: up}}}
	for _, x := range []struct {
		what string
		node *Node
		want bool
	}{
		{"no node", nil, false},
		{"nothing on it", &Node{}, false},
		{"the pool's own taint", &Node{Taints: []Taint{own}}, false},
		{"our fence", &Node{Taints: []Taint{{Key: DisruptedTaint, Effect: NoSchedule}}}, false},
		{"a taint that keeps nobody off", &Node{Taints: []Taint{{Key: "agent", Effect: PreferNoSchedule}}}, false},
		{"an agent's taint", &Node{Taints: []Taint{own, {Key: "agent", Effect: NoExecute}}}, true},
		{"a cordon", &Node{Cordoned: true}, true},
	} {
		want := time.Time{}
		if x.want {
			want = up.Add(30 * time.Second)
		}
		if got := c.MayClear(x.node); !got.Equal(want) {
			t.Errorf("%s: kept until %s, want %s", x.what, got, want)
		}
	}
}
