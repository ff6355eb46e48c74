package series

import "github.com/prometheus/client_golang/prometheus"

// Registerer is where metrics are registered.
type Registerer = prometheus.Registerer

// Maker makes and registers metrics.
type Maker struct{ Registry Registerer }

// Counter makes and registers a counter.
func (mk Maker) Counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	mk.Registry.MustRegister(c)
	return c
}

// Gauge makes and registers a gauge.
func (mk Maker) Gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	mk.Registry.MustRegister(g)
	return g
}

// Histogram makes and registers a histogram.
func (mk Maker) Histogram(name, help string, limiters []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: limiters}, labels)
	mk.Registry.MustRegister(h)
	return h
}

// Summary makes and registers a summary.
func (mk Maker) Summary(name, help string, labels ...string) *prometheus.SummaryVec {
	objectives := map[float64]float64{0: 0.01, 0.5: 0.01, 0.9: 0.01, 0.99: 0.01, 1: 0.01}
	s := prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: help, Objectives: objectives}, labels)
	mk.Registry.MustRegister(s)
	return s
}

// Durations are the bounds that the contract has for how long things take.
func Durations() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
		1.25, 1.5, 1.75, 2,
		2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600}
}
