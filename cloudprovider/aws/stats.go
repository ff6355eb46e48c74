package aws

import (
	"encoding/base64"
	"fmt"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// Stats are the metrics of the provider, by the contract's names. A nil Stats counts nothing.
type Stats struct {
	batchTime, batchSize *prometheus.HistogramVec
	userData             *userDataSizes
	launches, ends       *prometheus.CounterVec
}

// NewStats registers the metrics.
func NewStats(registry prometheus.Registerer) (*Stats, error) {
	s := &Stats{
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
	for _, c := range []prometheus.Collector{s.batchTime, s.batchSize, s.userData, s.launches, s.ends} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of EC2: %w", err)
		}
	}
	return s, nil
}

// Gathered notes a call that was made for several at once; it is what Options.Gathered wants.
func (s *Stats) Gathered(what string, size int, took time.Duration) {
	if s == nil {
		return
	}
	s.batchTime.WithLabelValues(what).Observe(took.Seconds())
	s.batchSize.WithLabelValues(what).Observe(float64(size))
}

// noteTemplate notes the user data of a launch template.
func (s *Stats) noteTemplate(class string, t *template) {
	if s == nil || t.data.UserData == nil {
		return
	}
	if data, err := base64.StdEncoding.DecodeString(*t.data.UserData); err == nil {
		s.userData.set(class, len(data))
	}
}

// noteRefused notes what EC2 refused of an order: the offerings that it names, or, if the whole call failed, every
// zone.
func (s *Stats) noteRefused(spec *launchSpec, errs []ec2types.CreateFleetError, err error) {
	if s == nil {
		return
	}
	ids := zoneIDs(spec.class)
	for i := range errs {
		zone := ""
		if l := errs[i].LaunchTemplateAndOverrides; l != nil && l.Overrides != nil {
			zone = deref(l.Overrides.AvailabilityZone)
			if zone == "" {
				zone = zoneOfSubnet(spec.class, deref(l.Overrides.SubnetId))
			}
		}
		s.launches.WithLabelValues(zone, ids[zone], spec.CapacityType, failureReason(deref(errs[i].ErrorCode),
			deref(errs[i].ErrorMessage))).Inc()
	}
	if err == nil {
		return
	}
	for _, zone := range spec.zones() {
		s.launches.WithLabelValues(zone, ids[zone], spec.CapacityType, failureReason(fault.Code(err),
			err.Error())).Inc()
	}
}

// noteNotEnded notes an instance that could not be ended.
func (s *Stats) noteNotEnded(i *ec2types.Instance) {
	if s == nil {
		return
	}
	zone, id := "", ""
	if i != nil && i.Placement != nil {
		zone, id = deref(i.Placement.AvailabilityZone), deref(i.Placement.AvailabilityZoneId)
	}
	s.ends.WithLabelValues(zone, id).Inc()
}

func zoneIDs(class *awsv1.EC2NodeClass) map[string]string {
	out := map[string]string{}
	for _, subnet := range class.Status.Subnets {
		out[subnet.Zone] = subnet.ZoneID
	}
	return out
}

func zoneOfSubnet(class *awsv1.EC2NodeClass, id string) string {
	for _, subnet := range class.Status.Subnets {
		if subnet.ID == id {
			return subnet.Zone
		}
	}
	return ""
}

// typeStats are gauges about what can be bought, worked out when somebody asks.
type typeStats struct {
	catalog                                    *catalog
	memory, cores, price, available, estimated *prometheus.Desc
}

// TypeStats are the metrics of what the classes that were asked about can buy.
func (p *Provider) TypeStats() prometheus.Collector {
	const prefix = "karpenter_cloudprovider_instance_type_"
	offering := []string{"instance_type", "capacity_type", "zone"}
	return &typeStats{
		catalog: p.catalog,
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
