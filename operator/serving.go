package operator

import (
	"crypto/tls"
	"net/http"
	"net/http/pprof"
	"time"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tenon-sh/tenon/internal/observe"
	"github.com/tenon-sh/tenon/internal/observe/authfilter"
)

// metricsOptions say how metrics, and what is served beside them, can be read. Secured, a reader shows a token of the
// cluster, which the API server reviews; it must be allowed to get the path. HTTP/2 is left out: its flaws have let
// anybody tie up a server before the token was looked at.
func metricsOptions(o *options) metricsserver.Options {
	out := metricsserver.Options{BindAddress: address(o.bindAddress, o.metricsPort), ExtraHandlers: profiling(o)}
	if o.secureMetrics {
		out.SecureServing, out.CertDir = true, o.metricsCertDir
		out.FilterProvider = authfilter.New(time.Now)
		out.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion, c.NextProtos = tls.VersionTLS12, []string{"http/1.1"}
		}}
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

// decisions serves why nodes stay on the metrics port if that is asked for: it names pods and nodes, and goes through
// all of them.
func decisions(o *options, observer *observe.Observer) map[string]http.Handler {
	if !o.enableProfiling || o.metricsPort == 0 {
		return nil
	}
	return map[string]http.Handler{observe.DisruptionPath: observer.Disruption()}
}
