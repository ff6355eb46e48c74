package actuate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/command"
)

// bind puts a pod on its node. A pod that is gone, that somebody else has bound or that is another of the same name
// (the UID tells) needs nothing any more.
func (a *Actor) bind(ctx context.Context, c command.Bind) (result, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	err := a.Client.SubResource("binding").Create(ctx, pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, UID: types.UID(c.UID)},
		Target:     corev1.ObjectReference{Kind: "Node", Name: c.Node},
	})
	// It is not asked for again before the watch has shown who was faster.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return result{}, fmt.Errorf("binding pod %s to node %s: %w", c.Pod, c.Node, err)
	}
	return result{writes: []command.Write{{Kind: command.KindPod, Name: c.UID, Bound: true, Node: c.Node}}}, nil
}
