package operator

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// slowCache is filled when told.
type slowCache struct {
	cache.Cache
	filled chan struct{}
}

func (s slowCache) WaitForCacheSync(context.Context) bool { <-s.filled; return true }

func TestReadyOnceTheCachesAreFilled(t *testing.T) {
	informers := slowCache{filled: make(chan struct{})}
	ctx, end := context.WithCancel(t.Context())
	ready := &readiness{ended: ctx.Err}
	done := make(chan error, 1)
	go func() { done <- ready.standby(informers).Start(t.Context()) }()
	if ready.check(nil) == nil {
		t.Error("ready before the caches are filled")
	}
	close(informers.filled)
	if err := <-done; err != nil || ready.check(nil) != nil {
		t.Errorf("not ready although the caches are filled: %v, %v", err, ready.check(nil))
	}
	if end(); ready.check(nil) == nil {
		t.Error("ready although it has been told to end")
	}
}

// TestReadyWhileTheCachesNeedIt: a Service leads to replicas that are ready. One whose lists wait for its own
// conversions would otherwise wait for ever.
func TestReadyWhileTheCachesNeedIt(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	must := false
	ready := &readiness{ended: ctx.Err, mustConvert: func() bool { return must }}
	if ready.check(nil) == nil {
		t.Error("ready before the caches are filled, and nobody needs its conversions")
	}
	must = true
	if err := ready.check(nil); err != nil {
		t.Errorf("not ready, and its caches wait for its conversions: %v", err)
	}
	if end(); ready.check(nil) == nil {
		t.Error("ready although it has been told to end")
	}
}
