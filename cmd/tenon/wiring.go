package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe"
)

func classKinds(p cloudprovider.Provider) []cluster.ClassRef {
	var out []cluster.ClassRef
	for _, gvk := range p.NodeClasses() {
		out = append(out, cluster.ClassRef{Group: gvk.Group, Kind: gvk.Kind})
	}
	return out
}

// readiness is what /readyz tells: the first list of every watched kind has arrived. The informers must have been made
// before, since a cache without any counts as filled.
type readiness struct {
	synced atomic.Bool
	// ended says that this replica has been told to end, so that nobody sends it anything new.
	ended func() error
	// mustConvert says that the caches can only be filled once this replica is asked for conversions, which its Service
	// leads here for when it is ready; nil if that never is so.
	mustConvert func() bool
}

func (r *readiness) check(*http.Request) error {
	if r.ended() != nil {
		return errors.New("the controller has been told to end")
	}
	if !r.synced.Load() && (r.mustConvert == nil || !r.mustConvert()) {
		return errors.New("the first list of some kind has not arrived yet")
	}
	return nil
}

// standby watches the caches on every replica, elected or not.
func (r *readiness) standby(informers cache.Cache) manager.Runnable {
	return everywhere(func(ctx context.Context) error {
		if informers.WaitForCacheSync(ctx) {
			r.synced.Store(true)
		}
		return nil
	})
}

// everywhere is a runnable that does not wait to be elected.
type everywhere func(context.Context) error

func (e everywhere) Start(ctx context.Context) error { return e(ctx) }
func (e everywhere) NeedLeaderElection() bool        { return false }

// runAll runs what belongs together until all have come to their end; the first that fails ends the others.
func runAll(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ends := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ends <- part(ctx) }()
	}
	var first error
	for range parts {
		if err := <-ends; err != nil && first == nil {
			first = err
			stop()
		}
	}
	return first
}

// pause lets time pass unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// tellTrouble logs once that the cloud does not say what it runs, and once that it does again.
func tellTrouble(log logr.Logger) func(error) {
	return func(err error) {
		if err != nil {
			log.Error(err, "the cloud does not say what it runs; nodes and instances that nobody claims are not looked for until it does")
			return
		}
		log.Info("the cloud says again what it runs")
	}
}

// tellDriftTrouble logs once that the cloud does not say which instances have drifted, and once that it does again.
func tellDriftTrouble(log logr.Logger) func(error) {
	return func(err error) {
		if err != nil {
			log.Error(err, "the cloud does not say whether instances have drifted; what it said last is believed until it does")
			return
		}
		log.Info("the cloud says again whether instances have drifted")
	}
}

// metricsOptions say how metrics, and what is served beside them, can be read. Secured, a reader shows a token of the cluster, which the API
// server reviews; it must be allowed to get the path. HTTP/2 is left out: its flaws have let anybody tie up a server before
// the token was looked at.
func metricsOptions(o *options) metricsserver.Options {
	out := metricsserver.Options{BindAddress: address(o.bindAddress, o.metricsPort), ExtraHandlers: profiling(o)}
	if o.secureMetrics {
		out.SecureServing, out.CertDir = true, o.metricsCertDir
		out.FilterProvider = observe.Guard(time.Now)
		out.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.NextProtos = tls.VersionTLS12, []string{"http/1.1"} }}
	}
	return out
}

// profiling serves /debug/pprof on the metrics port if it is asked for.
func profiling(o *options) map[string]http.Handler {
	if !o.enableProfiling {
		return nil
	}
	return map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
}
