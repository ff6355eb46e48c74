package actuate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/command"
)

// terminateOrphan ends an instance that no claim accounts for. The cache may be stale or empty, so whose the instance
// is, is asked of the cloud, and whether that claim is there of the API server, right before.
func (a *Actor) terminateOrphan(ctx context.Context, c command.Terminate) (result, error) {
	i, err := a.Cloud.Get(ctx, c.ProviderID)
	if cloudprovider.IsNotFound(err) {
		return result{instanceGone: true}, nil
	}
	if err != nil {
		return result{}, fmt.Errorf("finding out whose instance %s is: %w", c.ProviderID, err)
	}
	if c.Node == "" && i.ClaimUID != c.UID {
		return result{}, &cloudprovider.NotOwnedError{ProviderID: c.ProviderID,
			Want: cloudprovider.Owner{ClaimUID: c.UID}, Owner: i.Owner()}
	}
	if err := mustBeUnclaimed(ctx, a.Live, c.ProviderID, i.Owner()); err != nil {
		return result{}, err
	}
	ending, err := a.end(ctx, c.ProviderID, i.Owner())
	if c.Node != "" && cloudprovider.IsNotOwned(err) {
		// the node named a machine that is not ours at all: only the node is let go
		return result{instanceGone: true}, nil
	}
	if err != nil || !ending {
		return result{instanceGone: err == nil}, err
	}
	return result{retryAfter: askAgainAfter}, nil
}

// instanceClaim is a claim that may account for an instance, as the API server has it now.
type instanceClaim struct{ name, uid, providerID string }

// claimsOf asks the API server for the claims that say they have the instance, or that it was launched for.
func claimsOf(ctx context.Context, live client.Reader, id string, owner cloudprovider.Owner) ([]instanceClaim, error) {
	var out []instanceClaim
	for next := ""; ; {
		// One claim that can't be read as the type that it should be must not hide all others.
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaimList"))
		if err := live.List(ctx, list, client.Limit(claimsPerPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("asking the API server whether a NodeClaim accounts for instance %s: %w", id, err)
		}
		out = append(out, instanceClaimsFor(list, id, owner)...)
		if next = list.GetContinue(); next == "" {
			return out, nil
		}
	}
}

// claimsPerPage is how many claims are read at a time: many instances may be asked about at once, and claims may be
// thousands.
const claimsPerPage = 500

// instanceClaimsFor are the claims of a page that may account for an instance.
func instanceClaimsFor(list *unstructured.UnstructuredList, id string, owner cloudprovider.Owner) []instanceClaim {
	var out []instanceClaim
	for k := range list.Items {
		c := &list.Items[k]
		providerID, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
		uid := string(c.GetUID())
		named := owner.ClaimUID == "" && owner.ClaimName != "" && c.GetName() == owner.ClaimName
		if providerID == id || named || owner.ClaimUID != "" && uid == owner.ClaimUID {
			out = append(out, instanceClaim{name: c.GetName(), uid: uid, providerID: providerID})
		}
	}
	return out
}

// mustBeUnclaimed is an error if a claim accounts for the instance. A claim that has another instance does not.
func mustBeUnclaimed(ctx context.Context, live client.Reader, id string, owner cloudprovider.Owner) error {
	if id == "" {
		return nil // a node that never had a machine
	}
	claims, err := claimsOf(ctx, live, id, owner)
	if err != nil {
		return err
	}
	for _, c := range claims {
		if c.providerID == id || c.providerID == "" {
			return fmt.Errorf("instance %s is left alone: NodeClaim %s (UID %s) accounts for it", id, c.name, c.uid)
		}
	}
	return nil
}
