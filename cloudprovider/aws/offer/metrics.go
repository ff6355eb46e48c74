package offer

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// typeStats are gauges about what can be bought, worked out when somebody asks.
type typeStats struct {
	catalog                                    *Catalog
	memory, cores, price, available, estimated *prometheus.Desc
}

// Metrics are those of what the classes that were asked about can buy.
func (c *Catalog) Metrics() prometheus.Collector {
	const prefix = "karpenter_cloudprovider_instance_type_"
	offering := []string{"instance_type", "capacity_type", "zone"}
	return &typeStats{
		catalog: c,
		memory: prometheus.NewDesc(prefix+"memory_bytes", "Memory of an instance type.", []string{"instance_type"},
			nil),
		cores: prometheus.NewDesc(prefix+"cpu_cores", "Cores of an instance type.", []string{"instance_type"}, nil),
		price: prometheus.NewDesc(prefix+"offering_price_estimate", "Dollars per hour that an offering is "+
			"thought to cost.", offering, nil),
		available: prometheus.NewDesc(prefix+"offering_available", "1 if an offering may be bought for some class, "+
			"else 0.", offering, nil),
		estimated: prometheus.NewDesc("tenon_aws_price_estimated_types", "How many instance types of a class have a "+
			"price that is estimated.", []string{"ec2nodeclass"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *typeStats) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.memory, s.cores, s.price, s.available, s.estimated} {
		out <- d
	}
}

// Collect implements prometheus.Collector. Where classes differ, any that can buy an offering counts.
func (s *typeStats) Collect(out chan<- prometheus.Metric) {
	type key struct{ kind, capacityType, zone string }
	type sum struct{ price, available float64 }
	types, offerings := map[string][2]float64{}, map[key]sum{}
	for _, list := range s.catalog.all() {
		for _, t := range list {
			types[t.Name] = [2]float64{t.Capacity.Memory().AsApproximateFloat64(),
				t.Capacity.Cpu().AsApproximateFloat64()}
			for i := range t.Offerings {
				o := &t.Offerings[i]
				k := key{t.Name, o.Labels[v1.CapacityTypeLabelKey], o.Labels[corev1.LabelTopologyZone]}
				have := sum{price: o.Price, available: offerings[k].available}
				if o.Available {
					have.available = 1
				}
				offerings[k] = have
			}
		}
	}
	for class, n := range s.catalog.estimatedCounts() {
		out <- prometheus.MustNewConstMetric(s.estimated, prometheus.GaugeValue, float64(n), class)
	}
	for name, has := range types {
		out <- prometheus.MustNewConstMetric(s.memory, prometheus.GaugeValue, has[0], name)
		out <- prometheus.MustNewConstMetric(s.cores, prometheus.GaugeValue, has[1], name)
	}
	for k, o := range offerings {
		out <- prometheus.MustNewConstMetric(s.price, prometheus.GaugeValue, o.price, k.kind, k.capacityType, k.zone)
		out <- prometheus.MustNewConstMetric(s.available, prometheus.GaugeValue, o.available, k.kind,
			k.capacityType, k.zone)
	}
}
