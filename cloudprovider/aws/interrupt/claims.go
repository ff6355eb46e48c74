package interrupt

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
)

// claim is what matters of a NodeClaim.
type claim struct {
	name, node string
	// bought is its capacity type; empty if it does not say.
	bought   string
	uid      types.UID
	deleting bool
	known    cloudprovider.Interruption
}

// record is what was last written on a claim, and whether people were told of advice about it. Its lock makes two
// notices about the same instance come one after the other.
type record struct {
	mu      sync.Mutex
	written cloudprovider.Interruption
	advised bool
}

// claims are the NodeClaims of ours that have an instance, by its id. They are read as plain trees, not as the API's
// type: the core watches them so, and a second watch would keep them twice; and one that can't be read must not hide
// the others. Nothing of them is changed, so they need not be copied.
func (w *Watcher) claims(ctx context.Context) (map[string]*claim, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaimList"))
	if err := w.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	out := make(map[string]*claim, len(list.Items))
	there := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		there[string(item.GetUID())] = true
		provider, _, _ := unstructured.NestedString(item.Object, "status", "providerID")
		id := provider[strings.LastIndex(provider, "/")+1:]
		if !aws.IsOurs(item) || !strings.HasPrefix(provider, "aws://") || !strings.HasPrefix(id, "i-") {
			continue
		}
		c := &claim{name: item.GetName(), uid: item.GetUID(), deleting: item.GetDeletionTimestamp() != nil}
		c.bought = item.GetLabels()[v1.CapacityTypeLabelKey]
		c.node, _, _ = unstructured.NestedString(item.Object, "status", "nodeName")
		// What can't be read says nothing, and is overwritten.
		c.known, _ = cloudprovider.ParseInterruption(item.GetAnnotations()[cloudprovider.InterruptionAnnotation])
		out[id] = c
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid := range w.heard {
		if !there[uid] {
			delete(w.heard, uid)
		}
	}
	return out, nil
}

// recordOf is where the notices about a claim meet.
func (w *Watcher) recordOf(c *claim) *record {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.heard[string(c.uid)]
	if r == nil {
		r = &record{}
		w.heard[string(c.uid)] = r
	}
	return r
}

// apply writes a notice on a claim, unless the claim says as much already. People are told of what is new.
func (w *Watcher) apply(ctx context.Context, c *claim, n *notice) error {
	if c.deleting && n.ofState() {
		return nil // we have ended it ourselves
	}
	r := w.recordOf(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.Kind == cloudprovider.RebalanceRecommendation && w.Rebalance != Replace {
		if !r.advised {
			w.tell(ctx, c, n)
		}
		r.advised = true
		return nil
	}
	known := c.known.Over(r.written)
	now := known.Over(n.Interruption)
	if now == known {
		return nil
	}
	if err := w.write(ctx, c, now); err != nil {
		return err
	}
	r.written = now
	log.FromContext(ctx).Info("an instance is interrupted", "NodeClaim", c.name, "Node", c.node, "interruption",
		now.String())
	w.tell(ctx, c, n)
	return nil
}

// write annotates a claim. A claim that is gone, or another of the same name, is left alone.
func (w *Watcher) write(ctx context.Context, c *claim, i cloudprovider.Interruption) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": c.uid, "annotations": map[string]string{cloudprovider.InterruptionAnnotation: i.String()},
	}})
	if err != nil {
		return fmt.Errorf("wording the interruption of NodeClaim %s: %w", c.name, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaim"))
	object.SetName(c.name)
	err = w.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// without a version in the patch only the UID can be in conflict
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the interruption of NodeClaim %s: %w", c.name, err)
	}
	return nil
}

// tell writes an event about the claim, and one about its node if it has one.
func (w *Watcher) tell(ctx context.Context, c *claim, n *notice) {
	const action = "Interrupting"
	kind := corev1.EventTypeWarning
	if n.Kind == cloudprovider.RebalanceRecommendation {
		kind = corev1.EventTypeNormal
	}
	w.Events.Eventf(&corev1.ObjectReference{APIVersion: v1.GroupVersion().String(), Kind: "NodeClaim", Name: c.name,
		UID: c.uid},
		nil, kind, n.reason, action, "%s", n.text)
	if c.node == "" {
		return
	}
	node := &corev1.Node{}
	if err := w.Client.Get(ctx, client.ObjectKey{Name: c.node}, node); err != nil {
		return // without a node there is nobody to tell
	}
	w.Events.Eventf(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}, nil, kind,
		n.reason, action, "%s", n.text)
}
