package ownership

import (
	"context"
	"fmt"
	"maps"
	"slices"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// resolveOwners finds out whose the instances are that a process before this one has left, or whose launch's answer was
// lost:
//
//  1. What this process has given away, it knows.
//  2. An instance that was launched for one claim names it in its tags.
//  3. An instance whose id a NodeClaim has in its status is that claim's.
//  4. An instance that carries a claim's name is that claim's.
//  5. What is left of a launch is given out, in a fixed order, to those of its claims that have none. Nobody can have
//     been
//     told of another choice: it would show in 3.
//
// What then has no owner is an orphan, and the core ends it. NodeClaims are only read if 1 and 2 leave something open.
func (own *Register) resolveOwners(ctx context.Context, found []ec2types.Instance, claims client.Reader) error {
	open := own.resolveByTags(found)
	if len(open) == 0 {
		return nil
	}
	book, err := readClaims(ctx, claims)
	if err != nil {
		return err
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	open = slices.DeleteFunc(open, func(i *ec2types.Instance) bool {
		a := own.byInstance[*i.InstanceId]
		_, gone := own.gone[*i.InstanceId]
		return gone || a != nil && a.UID != "" || own.callsUnderWay[TagOf(i, LaunchTagKey)] != nil
	})
	open = own.resolveByClaims(open, book)
	open = own.resolveInOrder(open, book)
	for _, i := range open {
		own.unowned[*i.InstanceId] = i
	}
	return nil
}

// resolveByTags does steps 1 and 2 and returns what is open after them.
func (own *Register) resolveByTags(found []ec2types.Instance) []*ec2types.Instance {
	own.mu.Lock()
	defer own.mu.Unlock()
	clear(own.unowned)
	var open []*ec2types.Instance
	for k := range found {
		i := &found[k]
		if _, gone := own.gone[*i.InstanceId]; gone {
			continue
		}
		if a := own.byInstance[*i.InstanceId]; a != nil {
			if name := ClaimName(i); name != "" {
				a.Named = name == a.Name || a.Name == ""
			}
			if a.UID != "" {
				continue
			}
		}
		tags := tagsOf(i)
		list := readClaimTags(tags)
		if own.callsUnderWay[tags[LaunchTagKey]] != nil {
			continue
		}
		uid, ok := "", false
		if len(list) == 1 && ClaimName(i) != "" {
			uid, ok = fullUID(list[0])
		}
		if !ok {
			open = append(open, i)
			continue
		}
		own.Assign(&Assignment{Claim: Claim{Name: ClaimName(i), UID: types.UID(uid)},
			ID: *i.InstanceId, Named: true})
	}
	return open
}

// claimIndex is what the NodeClaims say.
type claimIndex struct {
	byInstance map[string]Claim
	byName     map[string]Claim
	byShortUID map[string]Claim
	launched   map[types.UID]bool
}

// readClaims reads the NodeClaims; nil if there is nobody to ask.
func readClaims(ctx context.Context, claims client.Reader) (*claimIndex, error) {
	if claims == nil {
		return nil, nil
	}
	// One claim that can't be read as the type that it should be must not hide all others.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaimList"))
	if err := claims.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing NodeClaims to find out whose instances are: %w", err)
	}
	book := &claimIndex{byInstance: map[string]Claim{}, byName: map[string]Claim{},
		byShortUID: map[string]Claim{}, launched: map[types.UID]bool{}}
	for k := range list.Items {
		c := &list.Items[k]
		o := Claim{Name: c.GetName(), UID: c.GetUID()}
		book.byName[o.Name], book.byShortUID[ShortUID(string(o.UID))] = o, o
		providerID, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
		if id, err := InstanceID(providerID); err == nil {
			book.byInstance[id] = o
			book.launched[o.UID] = true
		}
	}
	return book, nil
}

// resolveByClaims does steps 3 and 4 and returns what is open after them. The lock is held.
func (own *Register) resolveByClaims(open []*ec2types.Instance, book *claimIndex) []*ec2types.Instance {
	if book == nil {
		return open
	}
	return slices.DeleteFunc(open, func(i *ec2types.Instance) bool {
		o, ok := book.byInstance[*i.InstanceId]
		if !ok {
			o, ok = book.byName[ClaimName(i)]
			list := readClaimTags(tagsOf(i))
			ok = ok && (len(list) == 0 || slices.Contains(list, ShortUID(string(o.UID))))
		}
		if ok {
			own.Assign(&Assignment{Claim: o, ID: *i.InstanceId, Named: ClaimName(i) != ""})
		}
		return ok
	})
}

// resolveInOrder does step 5 and returns what is open after it. The lock is held.
func (own *Register) resolveInOrder(open []*ec2types.Instance, book *claimIndex) []*ec2types.Instance {
	launches := map[string][]*ec2types.Instance{}
	for _, i := range open {
		if ClaimName(i) == "" && isAlive(i) && TagOf(i, LaunchTagKey) != "" {
			launches[TagOf(i, LaunchTagKey)] = append(launches[TagOf(i, LaunchTagKey)], i)
		}
	}
	for _, launch := range slices.Sorted(maps.Keys(launches)) {
		var ids []string
		for _, i := range launches[launch] {
			ids = append(ids, *i.InstanceId)
		}
		var unserved []Claim
		for _, m := range readClaimTags(tagsOf(launches[launch][0])) {
			if o, ok := waitingClaim(m, book); ok {
				unserved = append(unserved, o)
			}
		}
		own.assignInOrder(ids, unserved, func(id string, to Claim) {
			own.Assign(&Assignment{Claim: to, ID: id})
		})
	}
	return slices.DeleteFunc(open, func(i *ec2types.Instance) bool {
		a := own.byInstance[*i.InstanceId]
		return a != nil && a.UID != ""
	})
}

// waitingClaim is the claim behind a mark, if it exists and has no instance as far as the NodeClaims tell.
func waitingClaim(m string, book *claimIndex) (Claim, bool) {
	if book == nil {
		uid, ok := fullUID(m)
		return Claim{UID: types.UID(uid)}, ok
	}
	o, ok := book.byShortUID[m]
	return o, ok && !book.launched[o.UID]
}

// RecallInstance finds the claim's instance among those whose owner could not be told: whoever asks knows both the
// claim's name and its UID.
func (own *Register) RecallInstance(claim *v1.NodeClaim) *Assignment {
	own.mu.Lock()
	defer own.mu.Unlock()
	if a := own.byClaim[claim.UID]; a != nil {
		if a.Name == "" {
			a.Name = claim.Name
		}
		return copyOf(a)
	}
	for _, i := range own.unowned {
		if ClaimName(i) == claim.Name && slices.Contains(readClaimTags(tagsOf(i)), ShortUID(string(claim.UID))) {
			a := &Assignment{Claim: Claim{Name: claim.Name, UID: claim.UID}, ID: *i.InstanceId,
				Named: true}
			own.Assign(a)
			return copyOf(a)
		}
	}
	return nil
}
