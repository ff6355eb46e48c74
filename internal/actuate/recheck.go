package actuate

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/command"
)

// mustBeEmpty is an error if the node of an instance that is to be ended has pods that were not known when that was
// decided, or if the node itself was not. A watch may be behind, most of all when a replica has just taken over; the
// drain goes on when it has caught up.
func mustBeEmpty(ctx context.Context, live client.Reader, c command.Terminate) error {
	if !c.Drained {
		return mustBeMissing(ctx, live, c.Missing, c.ProviderID)
	}
	for _, node := range append([]string{c.Node}, c.DuplicateNodes...) {
		if err := noOthersOn(ctx, live, node, c.StayingPods); err != nil {
			return err
		}
	}
	return nil
}

// noOthersOn is an error if the node has pods that run and are not among those that may stay.
func noOthersOn(ctx context.Context, live client.Reader, node string, stay []string) error {
	list := &corev1.PodList{}
	if err := live.List(ctx, list, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return fmt.Errorf("asking the API server for the pods on node %s: %w", node, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		done := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !done && !slices.Contains(stay, string(pod.UID)) {
			return fmt.Errorf("pod %s/%s is on node %s, and the watch of pods has not shown it yet",
				pod.Namespace, pod.Name, node)
		}
	}
	return nil
}

// mustBeMissing is an error if the API server has the instance's node. An empty name is no node's.
func mustBeMissing(ctx context.Context, live client.Reader, name, providerID string) error {
	if name == "" {
		return nil
	}
	node := &corev1.Node{}
	err := live.Get(ctx, client.ObjectKey{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("asking the API server whether node %s is there: %w", name, err)
	case node.Spec.ProviderID != providerID: // another machine of the same name
		return nil
	}
	return fmt.Errorf("node %s is there, and the watch of nodes has not shown it yet", name)
}
