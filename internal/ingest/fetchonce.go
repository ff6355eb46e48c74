package ingest

import (
	"context"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// FetchCatalogs asks, one after the other, for every catalog that is due: one round of what Catalogs does without end.
// It is for whoever has a clock of their own.
func (b *Book) FetchCatalogs(ctx context.Context, provider cloudprovider.Catalog) {
	for _, e := range b.dueCatalogs() {
		types, err := provider.InstanceTypes(ctx, e.object)
		b.setCatalog(e.object.Name, e.object.Generation, types, err)
		b.fetchDone(e.object.Name)
	}
}
