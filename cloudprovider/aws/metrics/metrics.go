// Package metrics counts what EC2 is asked for and what it refuses, by the contract's names.
//
// It is part of the provider for EC2 and calls nobody.
package metrics

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// EC2 are the metrics of the calls of EC2. A nil EC2 counts nothing.
type EC2 struct {
	batchTime, batchSize *prometheus.HistogramVec
	userData             *userDataSizes
	launches, ends       *prometheus.CounterVec
}

// New registers the metrics.
func New(registry prometheus.Registerer) (*EC2, error) {
	m := &EC2{
		batchTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "karpenter_cloudprovider_batcher_batch_time_seconds", Help: "Duration of calls to EC2 that were " +
				"made for several at once.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 12)}, []string{"batcher"}),
		batchSize: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "karpenter_cloudprovider_batcher_batch_size", Help: "For how many a call to EC2 was made.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 11)}, []string{"batcher"}),
		userData: newUserDataSizes(),
		launches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "karpenter_cloudprovider_instance_launch_failures_total", Help: "Offerings that EC2 refused to " +
				"launch, by the reason."},
			[]string{"zone", "zone_id", "capacity_type", "reason"}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "karpenter_cloudprovider_instance_termination_failures_total", Help: "Instances that EC2 refused " +
				"to end."}, []string{"zone", "zone_id"}),
	}
	for _, c := range []prometheus.Collector{m.batchTime, m.batchSize, m.userData, m.launches, m.ends} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of EC2: %w", err)
		}
	}
	return m, nil
}

// Gathered notes a call that was made for several at once; it is what Options.Gathered wants.
func (m *EC2) Gathered(what string, size int, took time.Duration) {
	if m == nil {
		return
	}
	m.batchTime.WithLabelValues(what).Observe(took.Seconds())
	m.batchSize.WithLabelValues(what).Observe(float64(size))
}

// NoteUserData notes the user data, in base64, that nodes of a class are given; nil for none.
func (m *EC2) NoteUserData(class string, encoded *string) {
	if m == nil || encoded == nil {
		return
	}
	if data, err := base64.StdEncoding.DecodeString(*encoded); err == nil {
		m.userData.set(class, len(data))
	}
}

// NoteRefused counts an offering that EC2 refused to launch.
func (m *EC2) NoteRefused(zone, zoneID, capacityType, code, message string) {
	if m != nil {
		m.launches.WithLabelValues(zone, zoneID, capacityType, failureReason(code, message)).Inc()
	}
}

// NoteNotEnded counts an instance that could not be ended.
func (m *EC2) NoteNotEnded(zone, zoneID string) {
	if m != nil {
		m.ends.WithLabelValues(zone, zoneID).Inc()
	}
}
