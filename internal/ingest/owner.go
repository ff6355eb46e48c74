package ingest

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
)

// SetOwner takes in how many pods an owner wants. It comes with UIDs as the API server shows them, and is kept under
// its key.
func (b *Book) SetOwner(o cluster.Owner) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o.Since = b.now()
	o.UID = cluster.OwnerKey(o.Namespace, o.UID)
	if o.Workload != "" {
		o.Workload = cluster.OwnerKey(o.Namespace, o.Workload)
	}
	if have, known := b.owners.Current[o.UID]; known && have.Kind == o.Kind && have.Known == o.Known &&
		have.Desired == o.Desired && have.Workload == o.Workload {
		return
	}
	b.owners.Set(o.UID, o)
	b.noteAndWake(change.None)
}

// DeleteOwner takes in that an owner is gone.
func (b *Book) DeleteOwner(namespace string, uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owners.Remove(cluster.OwnerKey(namespace, string(uid)))
	b.noteAndWake(change.None)
}
