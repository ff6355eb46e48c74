package saving

import (
	"fmt"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/market"
)

func BenchmarkAppraise(b *testing.B) {
	var types []cluster.Type
	var offers []cluster.Offering
	var names []string
	for i := range 700 {
		name := fmt.Sprintf("t%03d", i)
		types = append(types, cluster.Type{Name: name})
		for _, zone := range []string{"a", "b", "c"} {
			offers = append(offers, disrupttest.Offering(i, name, zone, disrupt.OnDemand, 1+float64(i)/10),
				disrupttest.Offering(i, name, zone, disrupt.Spot,
					0.3+float64(i)/30))
		}
		if i < 60 {
			names = append(names, name)
		}
	}
	p := &cluster.Pool{Name: "p", Catalog: cluster.NewCatalog(types, offers)}
	candidates := []disrupt.Candidate{disrupttest.Goer(p, "t100", disrupt.OnDemand, 5, 20)}
	bins := []market.Bin{disrupttest.BinOf(p, []string{disrupt.OnDemand, disrupt.Spot}, names...)}
	b.ResetTimer()
	for range b.N {
		if _, blocked := appraised(disrupt.Settings{MinSaving: 0.05}, candidates, bins); blocked != nil {
			b.Fatalf("%+v", *blocked)
		}
	}
}
