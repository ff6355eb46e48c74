package price_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

func TestTableIsSmallAndWhole(t *testing.T) {
	info, err := os.Stat("prices.txt")
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 2<<20 {
		t.Errorf("the embedded table has %d bytes, want less than 2 MiB", info.Size())
	}
	places := price.Places()
	if !slices.IsSorted(places) || len(slices.Compact(slices.Clone(places))) != len(places) {
		t.Error("places are not sorted, or are there twice")
	}
	regions, spot := 0, 0
	for _, place := range places {
		table, err := price.Embedded(place)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(place, "-") == 2 {
			regions++
			if len(table.Types()) < 150 {
				t.Errorf("%s has prices of %d types", place, len(table.Types()))
			}
		}
		for _, name := range table.Types() {
			onDemand, ok := table.OnDemand(name)
			if !ok || onDemand <= 0 {
				t.Errorf("%s in %s costs %v, %v", name, place, onDemand, ok)
			}
			for _, p := range table.SpotZones(name) {
				if p <= 0 || p > 12*onDemand {
					t.Errorf("%s in %s costs %v as spot, %v on demand", name, place, p, onDemand)
				}
				spot++
			}
		}
	}
	if regions < 30 || spot < 25000 {
		t.Errorf("%d regions, %d spot prices; want every region", regions, spot)
	}
}

func TestTable(t *testing.T) {
	table, err := price.Embedded("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := table.OnDemand("m5.large"); !ok || p != 0.096 {
		t.Errorf("m5.large costs %v, %v; want 0.096", p, ok)
	}
	if len(table.SpotZones("m5.large")) < 3 {
		t.Errorf("spot prices of m5.large: %v", table.SpotZones("m5.large"))
	}
	if table.Date().Before(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the table is from %v", table.Date())
	}
	if _, ok := table.OnDemand("m5.huge"); ok {
		t.Error("a type that doesn't exist has a price")
	}
	unknown, err := price.Embedded("mars-north-1")
	if err != nil || len(unknown.Types()) != 0 {
		t.Errorf("a region that opened later: %d prices, %v; want an empty table", len(unknown.Types()), err)
	}
	if part, _ := price.Embedded("us-east"); len(part.Types()) != 0 {
		t.Error("a part of a region's name finds prices")
	}
}
