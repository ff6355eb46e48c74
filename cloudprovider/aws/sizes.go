package aws

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeLimit bounds how long a scrape waits to hear which classes there are; that comes from a cache.
const scrapeLimit = 5 * time.Second

// sizes are those of the user data that nodes of each class were last given. A class that is gone leaves no series.
type sizes struct {
	desc *prometheus.Desc

	mu    sync.Mutex
	bytes map[string]int
	// there tells whether a class is there; nil if nobody knows.
	there func(ctx context.Context, class string) bool
}

func newSizes() *sizes {
	return &sizes{bytes: map[string]int{}, desc: prometheus.NewDesc("karpenter_ec2nodeclasses_userdata_bytes",
		"Size of the user data that nodes of a class were last given; EC2 takes 16384 bytes.", []string{"ec2nodeclass"}, nil)}
}

// know has classes left out that are not there.
func (s *Stats) know(there func(ctx context.Context, class string) bool) {
	if s == nil {
		return
	}
	s.userData.mu.Lock()
	defer s.userData.mu.Unlock()
	s.userData.there = there
}

func (s *sizes) set(class string, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes[class] = bytes
}

// Describe implements prometheus.Collector.
func (s *sizes) Describe(out chan<- *prometheus.Desc) { out <- s.desc }

// Collect implements prometheus.Collector.
func (s *sizes) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for class, bytes := range s.bytes {
		if s.there != nil && !s.there(ctx, class) {
			delete(s.bytes, class)
			continue
		}
		out <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(bytes), class)
	}
}
