package ingest

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/resource"
)

// collectFrom is how many entries, and collectFromBytes about how many bytes, may be remembered before they are looked
// through at all. At most twice what the pods and daemons that are there need is remembered beyond that.
const (
	collectFrom      = 4096
	collectFromBytes = 32 << 20
)

// collectThreshold is how much may be remembered before it is looked through.
type collectThreshold struct{ entries, bytes int }

// collectGarbage forgets what only pods had that are long gone, once that may be half of what is remembered. The lock
// is held.
func (b *Book) collectGarbage() {
	if b.entriesKept() > max(b.collectAt.entries, collectFrom) || b.isFull() {
		b.dropUnused()
		b.collectAt = collectThreshold{2 * b.entriesKept(), 2 * b.bytesKept()}
	}
}

// isFull reports whether as many bytes are remembered that what is unused should be dropped. The lock is held.
func (b *Book) isFull() bool { return b.bytesKept() > max(b.collectAt.bytes, collectFromBytes) }

func (b *Book) entriesKept() int {
	pods, _ := b.daemons.Remembered()
	return b.specs.Entries().Sum() + pods
}

func (b *Book) bytesKept() int {
	_, bytes := b.daemons.Remembered()
	return b.specs.Bytes() + bytes
}

// dropUnused forgets pod keys, classes, rules and labels that no pod and no daemon has, and pods of DaemonSets that are
// not there. The lock is held.
func (b *Book) dropUnused() {
	u := podspec.Used{Classes: make(map[*cluster.PodClass]bool), Labels: make(map[*cluster.Label]bool),
		Limits: make(map[*resource.Vector]bool), Specs: make(map[*podspec.Spec]bool)}
	for _, p := range b.pods.All() {
		u.Limits[p.Limits], u.Classes[p.Class] = true, true
		if len(p.Labels) > 0 {
			u.Labels[&p.Labels[0]] = true
		}
	}
	for d := range b.daemons.Each {
		u.Classes[d.Class] = true
	}
	for base := range b.mounts.Bases {
		u.Specs[base] = true
	}
	for base := range b.spreads.Bases {
		u.Specs[base] = true
	}
	b.specs.Forget(u)
	b.daemons.DropPods()
}
