package actuate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/command"
)

// evict asks the API server to evict the pod, which honours disruption budgets. A refusal is marked as such: it is
// tried again later, but nothing is wrong. So is one because the pod's namespace is being deleted, which takes the pod
// along. A pod whose node is out of time is deleted instead. The UID keeps a namesake safe.
func (a *Actor) evict(ctx context.Context, c command.Evict) (result, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	uid := types.UID(c.UID)
	var err error
	if c.Delete {
		grace := int64(c.Grace.Seconds())
		err = a.Client.Delete(ctx, pod, client.Preconditions{UID: &uid},
			&client.DeleteOptions{GracePeriodSeconds: &grace})
	} else {
		err = a.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
		})
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return result{writes: []command.Write{{Kind: command.KindPod, Name: c.UID}}}, nil
	}
	refused := !c.Delete && apierrors.IsTooManyRequests(err) || apierrors.HasStatusCause(err,
		corev1.NamespaceTerminatingCause)
	return result{refused: refused}, fmt.Errorf("evicting pod %s: %w", c.Pod, err)
}
