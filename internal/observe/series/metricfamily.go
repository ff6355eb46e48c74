package series

import (
	"slices"
	"sort"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Family is a gauge whose series are worked out when they are asked for. The library's own constant metrics would
// copy every label of every series; a cluster has tens of thousands of series that share nearly all of theirs.
type Family struct {
	Desc *prometheus.Desc
	// at says where each label, in the order in which it was named, goes: series carry their labels sorted.
	at []int
}

// NewFamily makes a family of series that have these labels.
func NewFamily(name, help string, labels ...string) *Family {
	f := &Family{Desc: prometheus.NewDesc(name, help, labels, nil), at: make([]int, len(labels))}
	sorted := slices.Sorted(slices.Values(labels))
	for i, label := range labels {
		f.at[i] = sort.SearchStrings(sorted, label)
	}
	return f
}

// Sample is one series: a value and its labels, in the order in which the family names them.
func (f *Family) Sample(value float64, labels ...*dto.LabelPair) prometheus.Metric {
	s := &sample{desc: f.Desc, value: value, labels: make([]*dto.LabelPair, len(f.at))}
	for i, at := range f.at {
		s.labels[at] = labels[i]
	}
	return s
}

// sample is a series of a family. Its label pairs may be shared with others.
type sample struct {
	desc   *prometheus.Desc
	value  float64
	labels []*dto.LabelPair
	gauge  dto.Gauge
}

// Desc says what the series belongs to.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write hands out the series.
func (s *sample) Write(out *dto.Metric) error {
	s.gauge.Value = &s.value
	out.Label, out.Gauge = s.labels, &s.gauge
	return nil
}

// Pairs makes label pairs for one scrape; equal ones are made once.
type Pairs struct {
	known map[string]map[string]*dto.LabelPair // by name and value
}

// NewPairs returns one that has made no pair yet.
func NewPairs() *Pairs {
	return &Pairs{known: make(map[string]map[string]*dto.LabelPair)}
}

// Shared is the pair of a label whose values repeat.
func (l *Pairs) Shared(name, value string) *dto.LabelPair {
	values := l.known[name]
	if values == nil {
		values = make(map[string]*dto.LabelPair)
		l.known[name] = values
	}
	pair := values[value]
	if pair == nil {
		pair = Pair(name, value)
		values[value] = pair
	}
	return pair
}

// Pair is the pair of a label whose value is one object's own.
func Pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// Truth is a yes or no as a label has it.
func Truth(yes bool) string {
	if yes {
		return "true"
	}
	return "false"
}

// LabelName writes the key of a Kubernetes label as the name of a metric's.
func LabelName(key string) string {
	return strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(key)
}
