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

// settle finds out whose the instances are that a process before this one has left, or whose launch's answer was lost:
//
//  1. What this process has given away, it knows.
//  2. An instance that was launched for one claim names it in its tags.
//  3. An instance whose id a NodeClaim has in its status is that claim's.
//  4. An instance that carries a claim's name is that claim's.
//  5. What is left of a launch is dealt out, in a fixed order, to those of its claims that have none. Nobody can have been
//     told of another choice: it would show in 3.
//
// What then has no owner is an orphan, and the core ends it. NodeClaims are only read if 1 and 2 leave something open.
func (r *register) settle(ctx context.Context, found []ec2types.Instance, claims client.Reader) error {
	open := r.settleByTags(found)
	if len(open) == 0 {
		return nil
	}
	book, err := readClaims(ctx, claims)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	open = slices.DeleteFunc(open, func(i *ec2types.Instance) bool {
		h := r.machines[*i.InstanceId]
		_, gone := r.gone[*i.InstanceId]
		return gone || h != nil && h.uid != "" || r.flying[tagOf(i, LaunchTagKey)] != nil
	})
	open = r.settleByClaims(open, book)
	open = r.dealOut(open, book)
	for _, i := range open {
		r.open[*i.InstanceId] = i
	}
	return nil
}

// settleByTags does steps 1 and 2 and returns what is open after them.
func (r *register) settleByTags(found []ec2types.Instance) []*ec2types.Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.open)
	var open []*ec2types.Instance
	for k := range found {
		i := &found[k]
		if _, gone := r.gone[*i.InstanceId]; gone {
			continue
		}
		if h := r.machines[*i.InstanceId]; h != nil {
			if name := claimName(i); name != "" {
				h.named = name == h.claim || h.claim == ""
			}
			if h.uid != "" {
				continue
			}
		}
		tags := tagsOf(i)
		list := readMarks(tags)
		if r.flying[tags[LaunchTagKey]] != nil {
			continue
		}
		uid, ok := "", false
		if len(list) == 1 && claimName(i) != "" {
			uid, ok = unmark(list[0])
		}
		if !ok {
			open = append(open, i)
			continue
		}
		r.hold(&holding{owner: owner{claim: claimName(i), uid: types.UID(uid)}, id: *i.InstanceId, named: true})
	}
	return open
}

// claimBook is what the NodeClaims say.
type claimBook struct {
	byInstance map[string]owner
	byName     map[string]owner
	byMark     map[string]owner
	launched   map[types.UID]bool
}

// readClaims reads the NodeClaims; nil if there is nobody to ask.
func readClaims(ctx context.Context, claims client.Reader) (*claimBook, error) {
	if claims == nil {
		return nil, nil
	}
	// One claim that can't be read as the type that it should be must not hide all others.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaimList"))
	if err := claims.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing NodeClaims to find out whose instances are: %w", err)
	}
	book := &claimBook{byInstance: map[string]owner{}, byName: map[string]owner{}, byMark: map[string]owner{}, launched: map[types.UID]bool{}}
	for k := range list.Items {
		c := &list.Items[k]
		o := owner{claim: c.GetName(), uid: c.GetUID()}
		book.byName[o.claim], book.byMark[mark(string(o.uid))] = o, o
		providerID, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
		if id, err := instanceID(providerID); err == nil {
			book.byInstance[id] = o
			book.launched[o.uid] = true
		}
	}
	return book, nil
}

// settleByClaims does steps 3 and 4 and returns what is open after them. The lock is held.
func (r *register) settleByClaims(open []*ec2types.Instance, book *claimBook) []*ec2types.Instance {
	if book == nil {
		return open
	}
	return slices.DeleteFunc(open, func(i *ec2types.Instance) bool {
		o, ok := book.byInstance[*i.InstanceId]
		if !ok {
			o, ok = book.byName[claimName(i)]
			list := readMarks(tagsOf(i))
			ok = ok && (len(list) == 0 || slices.Contains(list, mark(string(o.uid))))
		}
		if ok {
			r.hold(&holding{owner: o, id: *i.InstanceId, named: claimName(i) != ""})
		}
		return ok
	})
}

// dealOut does step 5 and returns what is open after it. The lock is held.
func (r *register) dealOut(open []*ec2types.Instance, book *claimBook) []*ec2types.Instance {
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
		var wanting []owner
		for _, m := range readMarks(tagsOf(launches[launch][0])) {
			if o, ok := waiting(m, book); ok {
				wanting = append(wanting, o)
			}
		}
		r.deal(ids, wanting, func(id string, to owner) { r.hold(&holding{owner: to, id: id}) })
	}
	return slices.DeleteFunc(open, func(i *ec2types.Instance) bool {
		h := r.machines[*i.InstanceId]
		return h != nil && h.uid != ""
	})
}

// waiting is the claim behind a mark, if it exists and has no instance as far as the NodeClaims tell.
func waiting(m string, book *claimBook) (owner, bool) {
	if book == nil {
		uid, ok := unmark(m)
		return owner{uid: types.UID(uid)}, ok
	}
	o, ok := book.byMark[m]
	return o, ok && !book.launched[o.uid]
}

// recall finds the claim's instance among those whose owner could not be told: whoever asks knows both the claim's name
// and its UID.
func (r *register) recall(claim *v1.NodeClaim) *holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.claims[claim.UID]; h != nil {
		if h.claim == "" {
			h.claim = claim.Name
		}
		return copyOf(h)
	}
	for _, i := range r.open {
		if claimName(i) == claim.Name && slices.Contains(readMarks(tagsOf(i)), mark(string(claim.UID))) {
			h := &holding{owner: owner{claim: claim.Name, uid: claim.UID}, id: *i.InstanceId, named: true}
			r.hold(h)
			return copyOf(h)
		}
	}
	return nil
}
