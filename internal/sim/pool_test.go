package sim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Whoever makes a claim while somebody has changed the pool of another, or soon after that was changed back, can't know
// better. Before it and later he can.
func TestOddPool(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	j := &judge{repooled: map[types.UID]span{"odd": {noon, noon.Add(time.Minute)}}}
	odd := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: "odd"}}
	plain := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: "plain"}}
	for after, want := range map[time.Duration]bool{
		-10 * time.Second: false,
		10 * time.Second:  true,
		70 * time.Second:  true,
		2 * time.Minute:   false,
	} {
		made := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(after))}}
		if got := j.oddPool(odd, made); got != want {
			t.Errorf("made %s after the change: %v", after, got)
		}
		if j.oddPool(plain, made) {
			t.Errorf("made %s after the change: nobody has changed the other one", after)
		}
	}
}
