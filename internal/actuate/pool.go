package actuate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/render"
)

// setPool writes a pool's status.
func (a *Actor) setPool(ctx context.Context, c command.SetPool) (result, error) {
	pool := &v1.NodePool{}
	err := a.edit(ctx, c.Pool, pool, func() {
		pool.Status.Nodes = c.Status.Nodes
		pool.Status.Resources = quantities(a.Names(), c.Status.Resources)
		pool.Status.Resources[corev1.ResourceName("nodes")] = *apiresource.NewQuantity(c.Status.Nodes,
			apiresource.DecimalSI)
		pool.Status.NodeClassObservedGeneration = c.Status.ClassGeneration
		for _, cond := range c.Status.Conditions {
			if cond.Status == cluster.Absent {
				meta.RemoveStatusCondition(&pool.Status.Conditions, cond.Type)
				continue
			}
			meta.SetStatusCondition(&pool.Status.Conditions, metav1.Condition{
				Type: cond.Type, Status: metav1.ConditionStatus(cond.Status), Reason: cond.Reason,
				Message:            render.Text(cond.Text),
				ObservedGeneration: cond.Generation,
			})
		}
	}, func(base client.Object) error {
		return a.Client.Status().Patch(ctx, pool, client.MergeFromWithOptions(base,
			client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return result{}, client.IgnoreNotFound(fmt.Errorf("writing the status of NodePool %s: %w", c.Pool, err))
	}
	return result{writes: []command.Write{{Kind: command.KindPool, Name: c.Pool, Version: pool.ResourceVersion}}}, nil
}
