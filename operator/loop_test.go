package operator

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/observe"
)

// What names every pod and node is only served to those who ask for it.
func TestDecisionsAreServedIfAskedFor(t *testing.T) {
	for args, want := range map[string]bool{"--enable-profiling=false": false, "--enable-profiling": true} {
		o, err := parse(t, args)
		if err != nil {
			t.Fatal(err)
		}
		observer := observe.New(logr.Discard(), nil, prometheus.NewRegistry(), time.Now, observe.Options{})
		if _, got := decisions(o, observer)[observe.DisruptionPath]; got != want {
			t.Errorf("%s: served %v, want %v", args, got, want)
		}
		o.metricsPort = 0
		if pages := decisions(o, observer); len(pages) != 0 {
			t.Errorf("%s: %v without a port", args, pages)
		}
	}
}
