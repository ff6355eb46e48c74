package interrupt

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what is counted.
type metrics struct {
	received  *prometheus.CounterVec
	deleted   prometheus.Counter
	queued    prometheus.Histogram
	unhealthy *prometheus.CounterVec
	readable  *prometheus.GaugeVec // one series, once the queue was tried: whoever does not read it has none
	ignored   *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		received: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "karpenter_interruption_received_messages_total",
				Help: "Messages received from the interruption queue, by type."}, []string{"message_type"}),
		deleted: prometheus.NewCounter(prometheus.CounterOpts{Name: "karpenter_interruption_deleted_messages_total",
			Help: "Messages deleted from the interruption queue."}),
		queued: prometheus.NewHistogram(
			prometheus.HistogramOpts{Name: "karpenter_interruption_message_queue_duration_seconds",
				Help: "How long messages were in the interruption queue.", Buckets: []float64{0.1, 0.25, 0.5,
					1, 2, 5, 10,
					20, 30, 60, 90, 120, 300, 600}}),
		unhealthy: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "karpenter_interruption_instance_status_unhealthy_total",
				Help: "Instances of which EC2 has said that they are unhealthy or will be changed, by what said so."},
			[]string{"category"}),
		readable: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tenon_interruption_queue_readable",
			Help: "1 while the interruption queue can be read, " +
				"0 while it can't. Only the replica that reads it has it."}, nil),
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tenon_interruption_ignored_messages_total",
			Help: "Messages of the interruption queue that were not believed or not understood, by why."},
			[]string{"why"}),
	}
	for _, why := range []string{malformed, tooLong, elsewhere, stale, notSpot, notReserved, unconfirmed} {
		m.ignored.WithLabelValues(why)
	}
	var all error
	for _, c := range []prometheus.Collector{m.received, m.deleted, m.queued, m.unhealthy, m.readable, m.ignored} {
		all = errors.Join(all, registry.Register(c))
	}
	if all != nil {
		return nil, fmt.Errorf("registering the metrics of interruptions: %w", all)
	}
	return m, nil
}
