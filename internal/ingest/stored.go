package ingest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/pools"
)

// setStoredPool takes in a NodePool as it is stored.
func (b *Book) setStoredPool(u *unstructured.Unstructured) {
	pool, lost := decode.ReadPool(u)
	if len(lost) == 0 {
		b.SetPool(pool)
		return
	}
	b.setBrokenPool(pool, lost)
}

// setBrokenPool takes in a NodePool of which parts can't be read. No node is made for it and none is taken from it to
// save money, since what was left out may have been the reason not to; its status tells what to correct.
func (b *Book) setBrokenPool(pool *v1.NodePool, lost []decode.Unreadable) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.setOtherPool(pool) {
		return
	}
	b.putPool(pools.ReadBroken(pool, b.poolStatus(pool), lost))
}

// setStoredClaim takes in a NodeClaim as it is stored. One of which parts can't be read is still a machine that holds
// pods, counts against limits and has to be ended some day: it is known by the rest. Whoever launches it reads it
// strictly.
func (b *Book) setStoredClaim(u *unstructured.Unstructured) {
	claim, _ := decode.ReadClaim(u)
	b.SetClaim(claim)
}

// storedKind is the kind as it is stored, to be watched or read without a Go type.
func storedKind(kind string) client.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1.GroupVersion().WithKind(kind))
	return u
}
