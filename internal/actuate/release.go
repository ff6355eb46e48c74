package actuate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/command"
)

// release lets go of the node and, when it is gone, of the claim: a claim without finalizer would leave the node
// without anybody to finish it.
func (a *Actor) release(ctx context.Context, c command.Release) (result, error) {
	var writes []command.Write
	if c.Node != "" {
		if err := a.releaseNode(ctx, c.Node, types.UID(c.NodeUID)); err != nil {
			return result{}, err
		}
		writes = append(writes, command.Write{Kind: command.KindNode, Name: c.Node, Gone: true})
	}
	if c.Claim == "" {
		return result{writes: writes}, nil
	}
	if err := nodeIsGone(ctx, a.Live, c); err != nil {
		return result{}, err
	}
	another := ""
	_, err := a.editClaim(ctx, c.Claim, func(claim *v1.NodeClaim) {
		another = ""
		switch {
		case claim.UID != types.UID(c.UID): // a namesake is another claim
		case claim.Status.ProviderID != c.ProviderID:
			another = claim.Status.ProviderID
		default:
			claim.Finalizers = without(claim.Finalizers)
		}
	})
	if err != nil {
		return result{}, err
	}
	if another != "" {
		return result{}, fmt.Errorf("releasing NodeClaim %s: it has got instance %s meanwhile", c.Claim, another)
	}
	return result{writes: append(writes, command.Write{Kind: command.KindClaim, Name: c.Claim, Gone: true})}, nil
}

// nodeIsGone is an error as long as the claim's node is there. Somebody else's finalizer may keep it.
func nodeIsGone(ctx context.Context, live client.Reader, c command.Release) error {
	if c.Node == "" {
		return nil
	}
	node := &corev1.Node{}
	err := live.Get(ctx, client.ObjectKey{Name: c.Node}, node)
	switch {
	case apierrors.IsNotFound(err), err == nil && node.UID != types.UID(c.NodeUID):
		return nil
	case err != nil:
		return fmt.Errorf("releasing NodeClaim %s: looking whether node %s is gone: %w", c.Claim, c.Node, err)
	}
	return fmt.Errorf("releasing NodeClaim %s: its instance is gone and node %s is kept by the finalizers %s; the "+
		"NodeClaim goes when the node does",
		c.Claim, c.Node, strings.Join(node.Finalizers, ", "))
}

// releaseNode takes our finalizer off the node and deletes it, unless it is another machine of the same name.
func (o *Objects) releaseNode(ctx context.Context, name string, uid types.UID) error {
	same := false
	_, err := o.editNode(ctx, name, func(n *corev1.Node) {
		if same = n.UID == uid; same {
			n.Finalizers = without(n.Finalizers)
		}
	})
	if err != nil || !same {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = o.Client.Delete(ctx, node, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting node %s: %w", name, err)
	}
	return nil
}

func without(finalizers []string) []string {
	return slices.DeleteFunc(finalizers, func(f string) bool { return f == v1.TerminationFinalizer })
}
