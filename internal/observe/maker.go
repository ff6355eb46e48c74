package observe

import "github.com/prometheus/client_golang/prometheus"

// Registerer is where metrics are registered.
type Registerer = prometheus.Registerer

// maker makes and registers metrics.
type maker struct{ registry Registerer }

func (mk maker) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	mk.registry.MustRegister(c)
	return c
}

func (mk maker) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	mk.registry.MustRegister(g)
	return g
}

func (mk maker) histogram(name, help string, limiters []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: limiters}, labels)
	mk.registry.MustRegister(h)
	return h
}

func (mk maker) summary(name, help string, labels ...string) *prometheus.SummaryVec {
	objectives := map[float64]float64{0: 0.01, 0.5: 0.01, 0.9: 0.01, 0.99: 0.01, 1: 0.01}
	s := prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: help, Objectives: objectives}, labels)
	mk.registry.MustRegister(s)
	return s
}

// durations are the bounds that the contract has for how long things take.
func durations() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
		1.25, 1.5, 1.75, 2,
		2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600}
}
