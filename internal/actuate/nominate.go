package actuate

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/command"
)

// fieldManager is the name under which nominations are written: it tells ours from kube-scheduler's own.
const fieldManager = "tenon"

// nominate writes the node that a pod is expected on to the pod's status; without a node it takes back what was
// written. The tests of the patch keep a namesake and a pod that has just been bound as they are: then there is nothing
// to say any more.
func (a *Actor) nominate(ctx context.Context, c command.Nominate) (result, error) {
	data, err := json.Marshal([]operation{
		{Op: "test", Path: "/metadata/uid", Value: c.UID},
		{Op: "test", Path: "/spec/nodeName"},
		{Op: "add", Path: "/status/nominatedNodeName", Value: c.Node},
	})
	if err != nil {
		return result{}, fmt.Errorf("writing a patch: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	err = a.Client.Status().Patch(ctx, pod, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(fieldManager))
	// One that is gone, bound or another is not asked about again before the watch has shown it.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) {
		return result{}, fmt.Errorf("nominating pod %s for node %s: %w", c.Pod, c.Node, err)
	}
	return result{writes: []command.Write{{Kind: command.KindPod, Name: c.UID, Nominated: true, Node: c.Node}}}, nil
}
