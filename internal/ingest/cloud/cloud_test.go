package cloud

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

func startTime() time.Time { return time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) }

// Machines of other controllers' claims are not in the list, by whatever they are known.
func TestOthersMachinesAreLeftOut(t *testing.T) {
	var inventory Inventory
	list := []*cloudprovider.Instance{{ProviderID: "a"}, {ProviderID: "b", ClaimUID: "theirs"}, {ProviderID: "c"}}
	if !inventory.Set(startTime(), list) || inventory.Set(startTime().Add(time.Minute), list) {
		t.Error("a list is news once")
	}
	others := NewOthers()
	if others.Without(inventory.Now()) != inventory.Now() {
		t.Error("without others the list is the cloud's own")
	}
	others.SetClaim("x", "theirs", "")
	others.SetClaim("y", "unknown", "c")
	var ids []string
	for _, i := range others.Without(inventory.Now()).Instances {
		ids = append(ids, i.ProviderID)
	}
	if !slices.Equal(ids, []string{"a"}) || len(inventory.Now().Instances) != 3 {
		t.Errorf("left are %q", ids)
	}
}

// What is gone is known as long as anything is left of it, unless the cloud lists it long after.
func TestGone(t *testing.T) {
	gone := make(Gone)
	gone.Note(command.Terminate{ProviderID: "a", Claim: "n", UID: "u"}, startTime())
	gone.Note(command.Terminate{ProviderID: "b", UID: "v"}, startTime())
	if !maps.Equal(gone.Keys(), map[string]bool{"a": true, "u": true, "b": true}) {
		t.Errorf("gone are %v", gone.Keys())
	}
	listed := &cluster.Inventory{At: startTime().Add(goneDoubtAfter), Instances: []cluster.Instance{{ProviderID: "b"}}}
	if gone.Recheck(listed); !gone.Has("b") {
		t.Error("the cloud may be behind for a while")
	}
	listed.At = listed.At.Add(1)
	if gone.Recheck(listed); gone.Has("b") {
		t.Error("it is there after all")
	}
	if gone.Forget(slices.Values([]string{"u"})); !gone.Has("u") || gone.Has("a") {
		t.Errorf("gone are %v", gone.Keys())
	}
}
