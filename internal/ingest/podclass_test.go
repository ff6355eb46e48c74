package ingest

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// BenchmarkManyClasses says how much memory the catalogs of 45 classes take in a snapshot, where the class is a label
// of the offerings and the types share the rest, as the AWS provider hands them out.
func BenchmarkManyClasses(b *testing.B) {
	const classes, types = 45, 1347
	for b.Loop() {
		book := bookOfClasses(classes)
		shapes := wares("", types, 1)
		for _, t := range shapes {
			delete(t.Labels, "class")
			delete(t.Labels, "tenancy")
		}
		inUse := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := inUse()
		for i := range classes {
			var list []*cloudprovider.InstanceType
			places := make(map[string]map[string]string)
			for _, shape := range shapes {
				t := *shape
				t.Offerings = make([]cloudprovider.Offering, len(shape.Offerings))
				for j, o := range shape.Offerings {
					key := fmt.Sprint(o.Labels[cluster.ZoneLabel], o.Labels[cluster.CapacityTypeLabel])
					if places[key] == nil {
						places[key] = map[string]string{"class": "c" + strconv.Itoa(i)}
						for k, v := range o.Labels {
							places[key][k] = v
						}
					}
					o.Labels = places[key]
					t.Offerings[j] = o
				}
				list = append(list, &t)
			}
			book.setCatalog("p"+strconv.Itoa(i), 1, list, nil)
		}
		s := book.Snapshot()
		b.ReportMetric(float64(inUse()-before)/classes/1e6, "MB/class")
		b.ReportMetric(float64(len(s.Pools[0].Catalog.Offerings)), "offerings/class")
		runtime.KeepAlive(book)
		runtime.KeepAlive(s)
	}
}
