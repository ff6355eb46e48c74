package ingest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
)

// shop sells by function.
type shop func(ctx context.Context, pool string) ([]*cloudprovider.InstanceType, error)

func (s shop) InstanceTypes(ctx context.Context, p *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return s(ctx, p.Name)
}

func oneType(name string) []*cloudprovider.InstanceType {
	return []*cloudprovider.InstanceType{{Name: name, Capacity: quantity("4"),
		Offerings: []cloudprovider.Offering{{Price: 1, Available: true}}}}
}

func defaultClass() cluster.ClassRef {
	return cluster.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
}

func bookWithPools(names ...string) (*Book, *clock) {
	b, c := newBook()
	b.SetNodeClass(defaultClass(), cluster.NodeClassState{Ready: true, Generation: 1})
	for _, name := range names {
		b.SetPool(pool(name))
	}
	return b, c
}

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
	}
}

// serve runs Catalogs until the test ends.
func serve(t *testing.T, b *Book, s shop) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.KeepCatalogs(ctx, s) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestOneHangingCatalogHoldsUpNobody(t *testing.T) {
	b, _ := bookWithPools("a-hangs", "b")
	serve(t, b, func(ctx context.Context, pool string) ([]*cloudprovider.InstanceType, error) {
		if pool == "b" {
			return oneType("m"), nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	waitUntil(t, "pool b has its catalog", func() bool { return b.Snapshot().Pool("b").Catalog != nil })
}

func TestOthersDoNotWaitLongForAFirstCatalog(t *testing.T) {
	b, clock := bookWithPools("slow")
	if !b.Snapshot().Pool("slow").AwaitsCatalog() {
		t.Fatal("nobody waits for the first catalog")
	}
	b.dueCatalogs() // it is asked for now
	clock.tick(offerings.FirstCatalogWait - time.Second)
	if !b.Snapshot().Pool("slow").AwaitsCatalog() {
		t.Fatal("the first catalog is given up too early")
	}
	clock.tick(time.Second)
	rev := b.Rev()
	b.dueCatalogs()
	if p := b.Snapshot().Pool("slow"); p.AwaitsCatalog() || p.CatalogError != offerings.NotAnswered {
		t.Errorf("waiting %v, error %q", p.AwaitsCatalog(), p.CatalogError)
	}
	if b.Rev() == rev {
		t.Error("nobody is woken when the waiting ends")
	}
	b.setCatalog("slow", 0, oneType("m"), nil)
	if p := b.Snapshot().Pool("slow"); p.Catalog == nil || p.CatalogError != "" {
		t.Errorf("a late answer was not taken: %+v", p)
	}
}

func TestWishDuringAFetchIsFetchedAgain(t *testing.T) {
	b, _ := bookWithPools("p")
	var calls atomic.Int32
	serve(t, b, func(context.Context, string) ([]*cloudprovider.InstanceType, error) {
		if calls.Add(1) > 1 {
			return oneType("new"), nil
		}
		b.SetNodeClass(defaultClass(), cluster.NodeClassState{Ready: true, Generation: 2})
		return oneType("old"), nil
	})
	waitUntil(t, "the catalog of the new class is there", func() bool {
		c := b.Snapshot().Pool("p").Catalog
		return c != nil && c.Types[0].Name == "new"
	})
}

func TestStatusWritesDoNotHurryAFailedFetch(t *testing.T) {
	b, clock := bookWithPools("p")
	if n := len(b.dueCatalogs()); n != 1 {
		t.Fatalf("%d fetches are due, want 1", n)
	}
	b.setCatalog("p", 0, nil, errors.New("boom"))
	b.fetchDone("p")
	b.SetPool(pool("p"))
	if n := len(b.dueCatalogs()); n != 0 {
		t.Error("an unchanged pool is asked about again at once")
	}
	clock.tick(offerings.CatalogRetry)
	if n := len(b.dueCatalogs()); n != 1 {
		t.Error("a failed fetch is not tried again")
	}
}

// What a cloud sells may change although nobody has touched a pool: prices are read again, a class finds another
// subnet.
func TestCatalogsAreFetchedWhenTheCloudSaysSo(t *testing.T) {
	b, _ := bookWithPools("p", "q")
	b.NoteNodeClassVersion(defaultClass(), "1")
	stock := func() {
		for len(b.dueCatalogs()) > 0 {
			for _, name := range []string{"p", "q"} {
				b.setCatalog(name, 1, oneType("m"), nil)
				b.fetchDone(name)
			}
		}
	}
	for _, c := range []struct {
		name string
		do   func()
		want int
	}{
		{"nothing has changed", func() {}, 0},
		{"prices have", b.RefetchCatalogs, 2},
		{"the class is the same", func() { b.NoteNodeClassVersion(defaultClass(), "1") }, 0},
		{"the class has found something", func() { b.NoteNodeClassVersion(defaultClass(), "2") }, 2},
	} {
		stock()
		c.do()
		if due := b.dueCatalogs(); len(due) != c.want {
			t.Errorf("%s: %d catalogs are fetched, want %d", c.name, len(due), c.want)
		}
		for _, name := range []string{"p", "q"} {
			b.fetchDone(name)
		}
	}
}
