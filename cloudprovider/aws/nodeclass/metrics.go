package nodeclass

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// scrapeLimit bounds how long a scrape waits for the list of classes, which comes from a cache.
const scrapeLimit = 5 * time.Second

// Metrics tell of EC2NodeClasses by the contract's names. Gauges are worked out when somebody asks, so that a class that
// is gone leaves no series. A nil Metrics counts nothing.
type Metrics struct {
	classes client.Reader
	now     func() time.Time

	count, seconds, terminating *prometheus.Desc
	transitions                 *prometheus.CounterVec
	lasted                      *prometheus.HistogramVec
	ended                       prometheus.Histogram
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer, classes client.Reader, now func() time.Time) (*Metrics, error) {
	const prefix = "operator_ec2nodeclass_"
	buckets := prometheus.ExponentialBuckets(0.5, 2, 16)
	condition := []string{"namespace", "name", "type", "status", "reason"}
	m := &Metrics{
		classes: classes, now: now,
		count:       prometheus.NewDesc(prefix+"status_condition_count", "1 for each condition of an object, in its present status.", condition, nil),
		seconds:     prometheus.NewDesc(prefix+"status_condition_current_status_seconds", "For how long a condition has been in its present status.", condition, nil),
		terminating: prometheus.NewDesc(prefix+"termination_current_time_seconds", "For how long an object has been on its way out.", []string{"namespace", "name"}, nil),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "status_condition_transitions_total",
			Help: "How often a condition has come into a status."}, []string{"type", "status", "reason"}),
		lasted: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "status_condition_transition_seconds", Buckets: buckets,
			Help: "How long a condition was in a status before it changed to another."}, []string{"type", "status", "to_status"}),
		ended: prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + "termination_duration_seconds", Buckets: buckets,
			Help: "Time from an object's deletion until it was gone."}),
	}
	for _, c := range []prometheus.Collector{m, m.transitions, m.lasted, m.ended} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of EC2NodeClasses: %w", err)
		}
	}
	return m, nil
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.count, m.seconds, m.terminating} {
		out <- d
	}
}

// Collect implements prometheus.Collector. If the classes can't be listed there is nothing to tell.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	list := &awsv1.EC2NodeClassList{}
	if err := m.classes.List(ctx, list); err != nil {
		return
	}
	now := m.now()
	for i := range list.Items {
		class := &list.Items[i]
		for _, c := range class.Status.Conditions {
			labels := []string{class.Namespace, class.Name, c.Type, string(c.Status), c.Reason}
			out <- prometheus.MustNewConstMetric(m.count, prometheus.GaugeValue, 1, labels...)
			out <- prometheus.MustNewConstMetric(m.seconds, prometheus.GaugeValue, now.Sub(c.LastTransitionTime.Time).Seconds(), labels...)
		}
		if at := class.DeletionTimestamp; at != nil {
			out <- prometheus.MustNewConstMetric(m.terminating, prometheus.GaugeValue, now.Sub(at.Time).Seconds(), class.Namespace, class.Name)
		}
	}
}

// moved notes that a condition has come into a status; was is nil if it is new.
func (m *Metrics) moved(was *metav1.Condition, is metav1.Condition) {
	if m == nil || was != nil && was.Status == is.Status {
		return
	}
	m.transitions.WithLabelValues(is.Type, string(is.Status), is.Reason).Inc()
	if was != nil {
		m.lasted.WithLabelValues(is.Type, string(was.Status), string(is.Status)).Observe(m.now().Sub(was.LastTransitionTime.Time).Seconds())
	}
}

// left notes that a class is gone.
func (m *Metrics) left(class *awsv1.EC2NodeClass) {
	if m != nil && class.DeletionTimestamp != nil {
		m.ended.Observe(m.now().Sub(class.DeletionTimestamp.Time).Seconds())
	}
}
