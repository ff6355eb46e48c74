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

// Metrics tell of EC2NodeClasses by the contract's names. Gauges are worked out when somebody asks, so that a class
// that is gone leaves no series. A nil Metrics counts nothing.
type Metrics struct {
	classes client.Reader
	now     func() time.Time
	// own are the families of classes alone, all those that they share with NodeClaims and NodePools.
	own, all *families
}

// families are what is told of conditions and of the end of objects.
type families struct {
	metrics                     *Metrics
	count, seconds, terminating *prometheus.Desc
	transitions                 *prometheus.CounterVec
	lasted, ended               *prometheus.HistogramVec
	// more are the values of the labels that come last.
	more []string
}

// unannounced hands out series of families that somebody else describes: the registry takes a description only once.
type unannounced struct{ prometheus.Collector }

func (unannounced) Describe(chan<- *prometheus.Desc) {}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer, classes client.Reader, now func() time.Time) (*Metrics, error) {
	m := &Metrics{classes: classes, now: now}
	m.own = newFamilies(m, "operator_ec2nodeclass_", nil)
	m.all = newFamilies(m, "operator_", []string{"group", "kind"}, awsv1.Group, awsv1.Kind)
	collectors := []prometheus.Collector{m.own, m.own.transitions, m.own.lasted, m.own.ended}
	for _, c := range []prometheus.Collector{m.all, m.all.transitions, m.all.lasted, m.all.ended} {
		collectors = append(collectors, unannounced{c})
	}
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of EC2NodeClasses: %w", err)
		}
	}
	return m, nil
}

func newFamilies(m *Metrics, prefix string, names []string, more ...string) *families {
	buckets := prometheus.ExponentialBuckets(0.5, 2, 15)
	condition, object := append([]string{"namespace", "name", "type", "status", "reason"}, names...),
		append([]string{"namespace", "name"}, names...)
	return &families{
		metrics: m, more: more,
		count: prometheus.NewDesc(prefix+"status_condition_count", "1 for each condition of an object, in its "+
			"present status.", condition, nil),
		seconds: prometheus.NewDesc(prefix+"status_condition_current_status_seconds", "For how long a condition "+
			"has been in its present status.", condition, nil),
		terminating: prometheus.NewDesc(prefix+"termination_current_time_seconds", "For how long an object has been "+
			"on its way out.", object, nil),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix +
			"status_condition_transitions_total",
			Help: "How often a condition has come into a status."}, append([]string{"type", "status", "reason"},
			names...)),
		lasted: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix +
			"status_condition_transition_seconds", Buckets: buckets,
			Help: "How long a condition was in a status before it changed to another."},
			append([]string{"type", "status", "to_status"}, names...)),
		ended: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "termination_duration_seconds",
			Buckets: buckets,
			Help:    "Time from an object's deletion until it was gone."}, names),
	}
}

// Describe implements prometheus.Collector.
func (f *families) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.count, f.seconds, f.terminating} {
		out <- d
	}
}

// Collect implements prometheus.Collector. If the classes can't be listed there is nothing to tell.
func (f *families) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	list := &awsv1.EC2NodeClassList{}
	if err := f.metrics.classes.List(ctx, list); err != nil {
		return
	}
	now := f.metrics.now()
	for i := range list.Items {
		class := &list.Items[i]
		for _, c := range class.Status.Conditions {
			labels := append([]string{class.Namespace, class.Name, c.Type, string(c.Status), c.Reason}, f.more...)
			out <- prometheus.MustNewConstMetric(f.count, prometheus.GaugeValue, 1, labels...)
			out <- prometheus.MustNewConstMetric(f.seconds, prometheus.GaugeValue,
				now.Sub(c.LastTransitionTime.Time).Seconds(), labels...)
		}
		if at := class.DeletionTimestamp; at != nil {
			labels := append([]string{class.Namespace, class.Name}, f.more...)
			out <- prometheus.MustNewConstMetric(f.terminating, prometheus.GaugeValue, now.Sub(at.Time).Seconds(),
				labels...)
		}
	}
}

// moved notes that a condition has come into a status; was is nil if it is new.
func (m *Metrics) moved(was *metav1.Condition, is metav1.Condition) {
	if m == nil || was != nil && was.Status == is.Status {
		return
	}
	for _, f := range []*families{m.own, m.all} {
		f.transitions.WithLabelValues(append([]string{is.Type, string(is.Status), is.Reason}, f.more...)...).Inc()
		if was != nil {
			f.lasted.WithLabelValues(append([]string{is.Type, string(was.Status), string(is.Status)}, f.more...)...).
				Observe(m.now().Sub(was.LastTransitionTime.Time).Seconds())
		}
	}
}

// left notes that a class is gone.
func (m *Metrics) left(class *awsv1.EC2NodeClass) {
	if m == nil || class.DeletionTimestamp == nil {
		return
	}
	for _, f := range []*families{m.own, m.all} {
		f.ended.WithLabelValues(f.more...).Observe(m.now().Sub(class.DeletionTimestamp.Time).Seconds())
	}
}
