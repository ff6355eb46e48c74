package refresh

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

// ages shows how old prices are.
type ages struct {
	book *price.Book
	age  *prometheus.Desc
}

// TellAges shows in a metric how old the prices are that nodes are bought by.
func TellAges(registry prometheus.Registerer, book *price.Book) error {
	err := registry.Register(&ages{book: book, age: prometheus.NewDesc("tenon_aws_price_age_seconds",
		"How old the prices are that nodes are bought by.", []string{"kind"}, nil)})
	if err != nil {
		return fmt.Errorf("showing the age of prices: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (a *ages) Describe(out chan<- *prometheus.Desc) { out <- a.age }

// Collect implements prometheus.Collector.
func (a *ages) Collect(out chan<- prometheus.Metric) {
	for _, kind := range []price.Kind{price.OnDemand, price.Spot} {
		out <- prometheus.MustNewConstMetric(a.age, prometheus.GaugeValue, a.book.Age(kind).Seconds(), string(kind))
	}
}
