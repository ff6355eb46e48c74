package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeLimit bounds how long a scrape waits to hear which classes there are; that comes from a cache.
const scrapeLimit = 5 * time.Second

// userDataSizes are those of the user data that nodes of each class were last given. A class that is gone leaves no
// series.
type userDataSizes struct {
	desc *prometheus.Desc

	mu    sync.Mutex
	bytes map[string]int
	// classExists tells whether a class is there; nil if nobody knows.
	classExists func(ctx context.Context, class string) bool
}

func newUserDataSizes() *userDataSizes {
	return &userDataSizes{bytes: map[string]int{}, desc: prometheus.NewDesc("karpenter_ec2nodeclasses_userdata_bytes",
		"Size of the user data that nodes of a class were last given; EC2 takes 16384 bytes.", []string{"ec2nodeclass"},
		nil)}
}

// SkipMissingClasses has classes left out that are not there.
func (m *EC2) SkipMissingClasses(there func(ctx context.Context, class string) bool) {
	if m == nil {
		return
	}
	m.userData.mu.Lock()
	defer m.userData.mu.Unlock()
	m.userData.classExists = there
}

func (s *userDataSizes) set(class string, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes[class] = bytes
}

// Describe implements prometheus.Collector.
func (s *userDataSizes) Describe(out chan<- *prometheus.Desc) { out <- s.desc }

// Collect implements prometheus.Collector.
func (s *userDataSizes) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for class, bytes := range s.bytes {
		if s.classExists != nil && !s.classExists(ctx, class) {
			delete(s.bytes, class)
			continue
		}
		out <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(bytes), class)
	}
}
