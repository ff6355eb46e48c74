package ingest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/pools"
)

// A NodeClass that is applied with its pool may come a moment later; then its absence is a mistake.
func TestAClassMayComeAfterItsPool(t *testing.T) {
	b, clock := newBook()
	p := pool("default")
	p.CreationTimestamp = metav1.NewTime(clock.now())
	b.SetPool(p)
	state := func() cluster.NodeClassState { return b.Snapshot().Pool("default").NodeClass }
	if got := state(); !got.Pending || !got.Until.Equal(at(12, 0).Add(nodeClassWait)) {
		t.Errorf("right after the pool: %+v, want it pending", got)
	}
	clock.tick(nodeClassWait - time.Millisecond)
	if got := state(); !got.Pending {
		t.Errorf("just before the time is up: %+v, want it pending", got)
	}
	clock.tick(time.Millisecond)
	if got := state(); got.Pending || got.Reason != pools.ClassNotFound {
		t.Errorf("when the time is up: %+v, want it not found", got)
	}
}

// A class whose keeper waits for something is not wrong, whatever its condition says of the reason.
func TestAClassThatWaitsIsPending(t *testing.T) {
	class := func(status, reason string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "EC2NodeClass", "metadata": map[string]any{"name": "default"},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status,
				"reason": reason, "message": "why"}}},
		}}
	}
	for status, want := range map[string]cluster.NodeClassState{
		"True":    {Ready: true},
		"Unknown": {Pending: true, Reason: pools.ClassUnknown, Message: `EC2NodeClass "default" is not ready yet: why`},
		"False":   {Reason: "UnhealthyDependents", Message: `EC2NodeClass "default" is not ready: why`},
	} {
		if got := pools.NodeClassState(class(status, "UnhealthyDependents")); got != want {
			t.Errorf("Ready=%s: %+v, want %+v", status, got, want)
		}
	}
	if got := pools.NodeClassState(class("False", "")); got.Reason != "NodeClassNotReady" {
		t.Errorf("a class that gives no reason: %+v", got)
	}
	if got := pools.NodeClassState(&unstructured.Unstructured{}); !got.Pending {
		t.Errorf("without conditions: %+v, want it pending", got)
	}
}
