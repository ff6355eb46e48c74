package ingest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/require"
)

// wares is a list as a cloud with many types sells it to a NodeClass: the class is one of the labels.
func wares(class string, types int, price float64) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	for i := range types {
		name := fmt.Sprintf("m%03d", i)
		t := &cloudprovider.InstanceType{Name: name, Capacity: quantity("4"),
			VolumeLimits: map[string]int32{decode.EbsDriver: int32(20 + i%5)},
			Labels: map[string][]string{"class": {class}, cluster.InstanceTypeLabel: {name},
				"tenancy": {"default", "dedicated"}}}
		for k := range 20 {
			t.Labels["size-"+strconv.Itoa(k)] = []string{strconv.Itoa(i % (k + 1))}
		}
		for _, zone := range []string{"a", "b", "c"} {
			for _, terms := range []string{"on-demand", "spot"} {
				t.Offerings = append(t.Offerings, cloudprovider.Offering{Price: price + float64(i), Available: true,
					Labels: map[string]string{cluster.ZoneLabel: zone, cluster.CapacityTypeLabel: terms,
						"zone-id": "id-" + zone}})
			}
		}
		out = append(out, t)
	}
	return out
}

// bookOfClasses has pools p0, p1 and so on, each with a NodeClass of its own.
func bookOfClasses(n int) *Book {
	b, _ := newBook()
	for i := range n {
		ref := defaultClass()
		ref.Name = "c" + strconv.Itoa(i)
		b.SetNodeClass(ref, cluster.NodeClassState{Ready: true, Generation: 1})
		p := pool("p" + strconv.Itoa(i))
		p.Spec.Template.Spec.NodeClassRef.Name = ref.Name
		b.SetPool(p)
	}
	return b
}

// sold is the catalog of a pool.
func sold(b *Book, pool string) *cluster.Catalog { return b.Snapshot().Pool(pool).Catalog }

func sameList(a, b cluster.Labels) bool { return len(a) == len(b) && &a[0] == &b[0] }

// TestOfferingsShareTheirLabels: a type's labels are kept once, those of its offerings once for all types.
func TestOfferingsShareTheirLabels(t *testing.T) {
	b := bookOfClasses(1)
	b.setCatalog("p0", 1, wares("c0", 30, 1), nil)
	c := sold(b, "p0")
	first, lists := make(map[int]cluster.Labels), make(map[*cluster.Label]bool)
	for i := range c.Offerings {
		o := &c.Offerings[i]
		if first[o.Type] == nil {
			first[o.Type] = o.Common
		}
		if !sameList(first[o.Type], o.Common) {
			t.Fatalf("offering %d has a list of its own of what is common to its type", i)
		}
		lists[&o.Labels[0]] = true
	}
	if len(c.Offerings) != 30*12 || len(lists) != 12 {
		t.Errorf("%d offerings have %d different lists of their own labels, want 360 and 12", len(c.Offerings),
			len(lists))
	}
}

// TestNewPricesShareTheRest: a list with other prices, or with less of everything, has the labels and the index of the
// one before, and that one stays as it was.
func TestNewPricesShareTheRest(t *testing.T) {
	b := bookOfClasses(2)
	b.setCatalog("p0", 1, wares("c0", 30, 1), nil)
	b.setCatalog("p1", 1, wares("c1", 30, 1), nil)
	old, other := sold(b, "p0"), sold(b, "p1")
	if is := require.Only("c1"); old.Index().Match("class", is).Any() || other.Index().Match("class",
		is).Count() != len(other.Offerings) {
		t.Error("an index is shared by catalogs whose labels differ")
	}
	b.setCatalog("p0", 1, wares("c0", 30, 2), nil)
	if sold(b, "p1") != other {
		t.Error("the other pool's catalog is made anew")
	}
	next := sold(b, "p0")
	if next == old || next.Offerings[0].Price != 2 || old.Offerings[0].Price != 1 {
		t.Fatalf("the price was %v and is %v", old.Offerings[0].Price, next.Offerings[0].Price)
	}
	if next.Index() != old.Index() || !sameList(next.Offerings[0].Common, old.Offerings[0].Common) {
		t.Error("what has not changed is kept twice")
	}
	b.specs.Dims.RemeasureAll()
	if again := sold(b, "p0"); again == next || &again.Offerings[0] != &next.Offerings[0] ||
		again.Index() != next.Index() {
		t.Error("offerings are made anew although only the types are measured again")
	}
}

// TestShortagesCopyOnlyWhatTheyTouch: pools of which the same is to be said share a catalog, and it is the same as
// before if there is nothing to say.
func TestShortagesCopyOnlyWhatTheyTouch(t *testing.T) {
	b := bookOfClasses(2)
	q := pool("q")
	q.Spec.Template.Spec.NodeClassRef.Name = "c0"
	b.SetPool(q)
	list := wares("c0", 30, 1)
	b.setCatalog("p0", 1, list, nil)
	b.setCatalog("q", 1, list, nil)
	b.setCatalog("p1", 1, wares("c1", 20, 1), nil)
	full, other := sold(b, "p0"), sold(b, "p1")
	if sold(b, "q") != full {
		t.Error("two pools with one list have two catalogs")
	}
	b.market.Shortages.Refuse([]command.UnavailableOffering{{Type: "m025", Zone: "a", CapacityType: "spot"}}, b.now())
	short := sold(b, "p0")
	if short == full || short.Available().Count() != full.Available().Count()-2 ||
		full.Available().Count() != len(full.Offerings) {
		t.Errorf("%d of %d can be bought", short.Available().Count(), full.Available().Count())
	}
	if sold(b, "q") != short {
		t.Error("two pools with one list and one shortage have two catalogs")
	}
	if sold(b, "p1") != other {
		t.Error("a pool that does not sell what is short has got another catalog")
	}
	b.market.Shortages.Refuse([]command.UnavailableOffering{{CapacityType: "spot", Within: "c1"}}, b.now())
	if c := sold(b, "p1"); c.Available().Count() != len(c.Offerings)/2 ||
		sold(b, "p0").Available().Count() != short.Available().Count() {
		t.Error("a shortage within a NodeClass, which is a label that all its types have, is not seen there alone")
	}
}

// TestManyPoolsCostLittle bounds what every further pool and every new list allocates.
func TestManyPoolsCostLittle(t *testing.T) {
	const pools, types = 6, 60
	b := bookOfClasses(pools)
	for i := range pools {
		b.setCatalog("p"+strconv.Itoa(i), 1, wares("c"+strconv.Itoa(i), types, 1), nil)
	}
	b.Snapshot()
	price := 1.0
	lists := make([][]*cloudprovider.InstanceType, 3)
	for i := range lists {
		price++
		lists[i] = wares("c0", types, price)
	}
	next := 0
	got := testing.AllocsPerRun(1, func() {
		b.setCatalog("p0", 1, lists[next], nil)
		b.Snapshot()
		next++
	})
	// Each offering costs a handful of allocations; its labels one by one, or those of every pool, would be far more.
	if most := float64(types * 12 * 12); got > most {
		t.Errorf("a list with new prices takes %.0f allocations, want at most %.0f", got, most)
	}
}

// plainly converts a list in the simplest way: every offering with all its labels.
func plainly(in []*cloudprovider.InstanceType) []string {
	var out []string
	for _, t := range in {
		for _, variant := range everyWay(t.Labels) {
			for _, o := range t.Offerings {
				labels := variant.Merge(cluster.LabelsOf(o.Labels)).With(cluster.InstanceTypeLabel, t.Name)
				out = append(out, fmt.Sprint(t.Name, labels, o.Price, o.Available))
			}
		}
	}
	slices.Sort(out)
	return out
}

// everyWay gives each label each of its values.
func everyWay(labels map[string][]string) []cluster.Labels {
	for key, values := range labels {
		rest := maps.Clone(labels)
		delete(rest, key)
		others := everyWay(rest)
		if len(values) == 0 {
			return others
		}
		var out []cluster.Labels
		for _, value := range values {
			for _, l := range others {
				out = append(out, l.With(key, value))
			}
		}
		return out
	}
	return []cluster.Labels{nil}
}

// oddWares leaves labels open, sets them by some offerings only, and contradicts itself.
func oddWares(r *rand.Rand) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	values := []string{"a", "b", "c"}
	for i := range 1 + r.Intn(4) {
		t := &cloudprovider.InstanceType{Name: "m" + strconv.Itoa(i), Capacity: quantity("4"),
			Labels: map[string][]string{cluster.InstanceTypeLabel: {"another"}}}
		for _, key := range []string{"k1", "k2", "k3", cluster.ZoneLabel} {
			if r.Intn(2) == 0 {
				t.Labels[key] = values[:r.Intn(3)]
			}
		}
		for range 1 + r.Intn(4) {
			o := cloudprovider.Offering{Price: float64(r.Intn(1000)), Available: r.Intn(2) == 0,
				Labels: map[string]string{}}
			for _, key := range []string{"k1", "k4", cluster.ZoneLabel, cluster.CapacityTypeLabel,
				cluster.InstanceTypeLabel} {
				if r.Intn(2) == 0 {
					o.Labels[key] = values[r.Intn(3)]
				}
			}
			t.Offerings = append(t.Offerings, o)
		}
		out = append(out, t)
	}
	return out
}

// TestSharingChangesNothing: whatever was there before, a list is converted to the same offerings in the same order,
// and the index knows every label.
func TestSharingChangesNothing(t *testing.T) {
	b := bookOfClasses(2)
	for seed := range int64(400) {
		r := rand.New(rand.NewSource(seed))
		list := oddWares(r)
		name := "p" + strconv.Itoa(r.Intn(2))
		b.setCatalog(name, 1, list, nil)
		c := sold(b, name)
		fresh := bookOfClasses(1)
		fresh.setCatalog("p0", 1, list, nil)
		if want := sold(fresh, "p0"); !reflect.DeepEqual(want.Offerings, c.Offerings) || !reflect.DeepEqual(want.Types,
			c.Types) || !reflect.DeepEqual(want.Index(), c.Index()) {
			t.Fatalf("seed %d: what was there before makes a difference", seed)
		}
		var got []string
		for i := range c.Offerings {
			o := &c.Offerings[i]
			all := o.AllLabels()
			got = append(got, fmt.Sprint(c.Types[o.Type].Name, all, o.Price, o.Available))
			for _, l := range all {
				if value, _ := o.Label(l.Key); value != l.Value || !c.Index().Match(l.Key,
					require.Only(l.Value)).Has(i) {
					t.Fatalf("seed %d: offering %d does not seem to have %v", seed, i, l)
				}
			}
			if before := i - 1; i > 0 && c.Offerings[before].Type == o.Type && c.Offerings[before].Zone == o.Zone &&
				c.Offerings[before].CapacityType == o.CapacityType &&
				slices.CompareFunc(c.Offerings[before].AllLabels(), all, func(x, y cluster.Label) int {
					return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Value, y.Value))
				}) > 0 {
				t.Fatalf("seed %d: offering %d is out of order", seed, i)
			}
		}
		slices.Sort(got)
		if want := plainly(list); !slices.Equal(got, want) {
			t.Fatalf("seed %d: it sells\n%v, want\n%v", seed, got, want)
		}
	}
}

// TestSnapshotsStayAsTheyAreWhileCatalogsChange has planners read old snapshots while lists, shortages and measures
// change.
func TestSnapshotsStayAsTheyAreWhileCatalogsChange(t *testing.T) {
	b := bookOfClasses(2)
	var readers sync.WaitGroup
	for round := range 12 {
		for i := range 2 {
			b.setCatalog("p"+strconv.Itoa(i), 1, wares("c"+strconv.Itoa(i), 5, float64(round)), nil)
		}
		b.market.Shortages.Refuse([]command.UnavailableOffering{{Type: "m00" + strconv.Itoa(round%5), Zone: "a",
			CapacityType: "spot"}}, b.now())
		if round%3 == 0 {
			b.specs.Dims.RemeasureAll()
		}
		s := b.Snapshot()
		before := describe(s)
		readers.Go(func() {
			for range 20 {
				if !maps.Equal(describe(s), before) {
					t.Error("a snapshot has changed after it was taken")
				}
			}
		})
	}
	readers.Wait()
}

// describe is all that a snapshot's pools sell.
func describe(s *cluster.Snapshot) map[string]string {
	out := make(map[string]string)
	for _, p := range s.Pools {
		out[p.Name] = fmt.Sprint(p.Catalog.Types, p.Catalog.Offerings, p.Catalog.Available(),
			p.Catalog.Index().Match("class", require.Anything()))
	}
	return out
}

// TestAnEstimateStaysOne: that a price is only an estimate reaches the catalog and the claims, and is news when it
// changes.
func TestAnEstimateStaysOne(t *testing.T) {
	b := bookOfClasses(1)
	guess := func(estimated bool) []*cloudprovider.InstanceType {
		types := wares("c0", 2, 1)
		for i := range types[1].Offerings {
			types[1].Offerings[i].PriceEstimated = estimated
		}
		return types
	}
	b.setCatalog("p0", 1, guess(false), nil)
	if sold(b, "p0").Estimated().Any() {
		t.Error("a price that was told is taken for an estimate")
	}
	types := guess(true)
	b.setCatalog("p0", 1, types, nil)
	c := sold(b, "p0")
	if got := c.Estimated().Count(); got != 2*len(types[1].Offerings) { // in both tenancies
		t.Errorf("%d offerings are estimated, want %d", got, 2*len(types[1].Offerings))
	}
	o := types[1].Offerings[0].Labels
	b.SetClaim(with(launchedClaim("n1", "", metav1.ConditionTrue), func(c *v1.NodeClaim) {
		c.Labels[v1.NodePoolLabelKey] = "p0"
		c.Labels[cluster.InstanceTypeLabel], c.Labels[cluster.ZoneLabel] = types[1].Name, o[cluster.ZoneLabel]
		c.Labels[cluster.CapacityTypeLabel] = o[cluster.CapacityTypeLabel]
	}))
	if claim := b.Snapshot().Claim("n1"); claim == nil || claim.Price == 0 || !claim.Estimated {
		t.Errorf("the claim is %+v, want an estimated price", claim)
	}
}
