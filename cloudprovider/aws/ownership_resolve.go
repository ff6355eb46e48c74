package aws

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
func (own *ownership) resolveOwners(ctx context.Context, found []ec2types.Instance, claims client.Reader) error {
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
		return gone || a != nil && a.uid != "" || own.callsUnderWay[tagOf(i, LaunchTagKey)] != nil
	})
	open = own.resolveByClaims(open, book)
	open = own.resolveInOrder(open, book)
	for _, i := range open {
		own.unowned[*i.InstanceId] = i
	}
	return nil
}

// resolveByTags does steps 1 and 2 and returns what is open after them.
func (own *ownership) resolveByTags(found []ec2types.Instance) []*ec2types.Instance {
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
			if name := claimName(i); name != "" {
				a.named = name == a.claim || a.claim == ""
			}
			if a.uid != "" {
				continue
			}
		}
		tags := tagsOf(i)
		list := readClaimTags(tags)
		if own.callsUnderWay[tags[LaunchTagKey]] != nil {
			continue
		}
		uid, ok := "", false
		if len(list) == 1 && claimName(i) != "" {
			uid, ok = fullUID(list[0])
		}
		if !ok {
			open = append(open, i)
			continue
		}
		own.assign(&assignment{claimIdentity: claimIdentity{claim: claimName(i), uid: types.UID(uid)},
			id: *i.InstanceId, named: true})
	}
	return open
}

// claimIndex is what the NodeClaims say.
type claimIndex struct {
	byInstance map[string]claimIdentity
	byName     map[string]claimIdentity
	byShortUID map[string]claimIdentity
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
	book := &claimIndex{byInstance: map[string]claimIdentity{}, byName: map[string]claimIdentity{},
		byShortUID: map[string]claimIdentity{}, launched: map[types.UID]bool{}}
	for k := range list.Items {
		c := &list.Items[k]
		o := claimIdentity{claim: c.GetName(), uid: c.GetUID()}
		book.byName[o.claim], book.byShortUID[shortUID(string(o.uid))] = o, o
		providerID, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
		if id, err := instanceID(providerID); err == nil {
			book.byInstance[id] = o
			book.launched[o.uid] = true
		}
	}
	return book, nil
}

// resolveByClaims does steps 3 and 4 and returns what is open after them. The lock is held.
func (own *ownership) resolveByClaims(open []*ec2types.Instance, book *claimIndex) []*ec2types.Instance {
	if book == nil {
		return open
	}
	return slices.DeleteFunc(open, func(i *ec2types.Instance) bool {
		o, ok := book.byInstance[*i.InstanceId]
		if !ok {
			o, ok = book.byName[claimName(i)]
			list := readClaimTags(tagsOf(i))
			ok = ok && (len(list) == 0 || slices.Contains(list, shortUID(string(o.uid))))
		}
		if ok {
			own.assign(&assignment{claimIdentity: o, id: *i.InstanceId, named: claimName(i) != ""})
		}
		return ok
	})
}

// resolveInOrder does step 5 and returns what is open after it. The lock is held.
func (own *ownership) resolveInOrder(open []*ec2types.Instance, book *claimIndex) []*ec2types.Instance {
	launches := map[string][]*ec2types.Instance{}
	for _, i := range open {
		if claimName(i) == "" && isAlive(i) && tagOf(i, LaunchTagKey) != "" {
			launches[tagOf(i, LaunchTagKey)] = append(launches[tagOf(i, LaunchTagKey)], i)
		}
	}
	for _, launch := range slices.Sorted(maps.Keys(launches)) {
		var ids []string
		for _, i := range launches[launch] {
			ids = append(ids, *i.InstanceId)
		}
		var unserved []claimIdentity
		for _, m := range readClaimTags(tagsOf(launches[launch][0])) {
			if o, ok := waitingClaim(m, book); ok {
				unserved = append(unserved, o)
			}
		}
		own.assignInOrder(ids, unserved, func(id string, to claimIdentity) {
			own.assign(&assignment{claimIdentity: to, id: id})
		})
	}
	return slices.DeleteFunc(open, func(i *ec2types.Instance) bool {
		a := own.byInstance[*i.InstanceId]
		return a != nil && a.uid != ""
	})
}

// waitingClaim is the claim behind a mark, if it exists and has no instance as far as the NodeClaims tell.
func waitingClaim(m string, book *claimIndex) (claimIdentity, bool) {
	if book == nil {
		uid, ok := fullUID(m)
		return claimIdentity{uid: types.UID(uid)}, ok
	}
	o, ok := book.byShortUID[m]
	return o, ok && !book.launched[o.uid]
}

// recallInstance finds the claim's instance among those whose owner could not be told: whoever asks knows both the
// claim's name and its UID.
func (own *ownership) recallInstance(claim *v1.NodeClaim) *assignment {
	own.mu.Lock()
	defer own.mu.Unlock()
	if a := own.byClaim[claim.UID]; a != nil {
		if a.claim == "" {
			a.claim = claim.Name
		}
		return copyOf(a)
	}
	for _, i := range own.unowned {
		if claimName(i) == claim.Name && slices.Contains(readClaimTags(tagsOf(i)), shortUID(string(claim.UID))) {
			a := &assignment{claimIdentity: claimIdentity{claim: claim.Name, uid: claim.UID}, id: *i.InstanceId,
				named: true}
			own.assign(a)
			return copyOf(a)
		}
	}
	return nil
}
