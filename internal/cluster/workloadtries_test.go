package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/require"
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
		if got := c.MayClearUntil(x.node); !got.Equal(want) {
			t.Errorf("%s: kept until %s, want %s", x.what, got, want)
		}
	}
}

// Terms may be very long: to compare many classes, nothing is written down of them.
func TestClassesWithManyWordsAreComparedByTheirHash(t *testing.T) {
	class := func(k int) *PodClass {
		values := make([]string, 5000)
		for i := range values {
			values[i] = fmt.Sprintf("v%05d", i)
		}
		v, _ := require.Make(require.NotIn, append(values, fmt.Sprint("w", k)))
		return &PodClass{Key: fmt.Sprint(k), NodeKey: fmt.Sprint(k), Terms: []require.Set{require.Set{}.With("a", v)}}
	}
	unused := UnusedNode{Claim: "c", Cause: Cause{Kind: CauseEvicted}}
	for k := range 50 {
		unused.Classes = append(unused.Classes, class(k))
	}
	tries := &WorkloadTries{Failures: []UnusedNode{unused}}
	other, same := class(50), class(49)
	if tries.ConcernsClass(other) != nil || tries.ConcernsClass(same) == nil {
		t.Errorf("held: a class like none %v, a class like one %v", tries.ConcernsClass(other) != nil,
			tries.ConcernsClass(same) != nil)
	}
	if n := testing.AllocsPerRun(10, func() { tries.ConcernsClass(other) }); n > 0 {
		t.Errorf("a look at a class allocates %v times", n)
	}
	same.NodeKey = "" // as in a snapshot from elsewhere
	if tries.ConcernsClass(same) == nil {
		t.Error("without a hash the words count, and are the same")
	}
}
