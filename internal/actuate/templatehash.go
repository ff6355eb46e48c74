package actuate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/command"
)

// writePoolHash writes the hash of a pool's template on the pool.
func (a *Actor) writePoolHash(ctx context.Context, c command.WritePoolHash) (result, error) {
	pool := &v1.NodePool{}
	err := a.edit(ctx, c.Pool, pool, func() {
		if c.UID == "" || pool.UID == types.UID(c.UID) { // a namesake is another pool
			pool.Annotations = annotated(pool.Annotations, hashAnnotations(c.Hash, c.Version))
		}
	}, func(base client.Object) error {
		return a.Client.Patch(ctx, pool, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return result{}, client.IgnoreNotFound(fmt.Errorf("writing the hash of NodePool %s: %w", c.Pool, err))
	}
	return result{writes: []command.Write{{Kind: command.KindPool, Name: c.Pool, Version: pool.ResourceVersion}}}, nil
}

// writeClaimHash writes a hash on a claim.
func (a *Actor) writeClaimHash(ctx context.Context, c command.WriteClaimHash) (result, error) {
	writes, err := a.annotate(ctx, c.Claim, c.UID, hashAnnotations(c.Hash, c.Version))
	return result{writes: writes}, err
}

func hashAnnotations(hash, version string) map[string]string {
	return map[string]string{v1.NodePoolHashAnnotationKey: hash, v1.NodePoolHashVersionAnnotationKey: version}
}
