package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenon-sh/tenon/cloudprovider"
)

func endChecks() []check {
	return []check{
		{"Found", "Get and List find an instance as Create described it.", getAndList},
		{"Unknown", "Get and Delete return NotFound, with the id, for an instance that is not there.", unknown},
		{"Delete", "Delete, repeated until NotFound, ends that instance and no other.", deleteEnds},
		{"Owner", "Delete ends an instance only for the claim that it was launched for; for others it returns " +
			"NotOwned, with the owner.", endsForItsOwner},
		{"Killed", "An instance that ended on its own is not found and not listed.", killed},
		{"NoDrift", "A new instance has not drifted.", noDrift},
	}
}

func getAndList(ctx context.Context, w *world) error {
	created, err := w.create(ctx)
	if err != nil {
		return err
	}
	if _, err := w.create(ctx); err != nil {
		return err
	}
	if err := w.found(ctx, created); err != nil {
		return err
	}
	return w.listed(ctx, 2)
}

// found looks whether Get and List describe the instance as Create did.
func (w *world) found(ctx context.Context, created *cloudprovider.Instance) error {
	got, err := w.Provider.Get(ctx, created.ProviderID)
	if err != nil {
		return fmt.Errorf("getting instance %s: %w", created.ProviderID, err)
	}
	if err := same(created, got); err != nil {
		return fmt.Errorf("what Get says differs from Create: %w", err)
	}
	all, err := w.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("listing instances: %w", err)
	}
	for _, i := range all {
		if i.ProviderID != created.ProviderID {
			continue
		}
		if err := same(created, i); err != nil {
			return fmt.Errorf("what List says differs from Create: %w", err)
		}
		return nil
	}
	return fmt.Errorf("the List has %v and lacks %s", ids(all), created.ProviderID)
}

func same(a, b *cloudprovider.Instance) error {
	if a.ProviderID != b.ProviderID || a.ClaimName != b.ClaimName || a.ClaimUID != b.ClaimUID || a.Type != b.Type ||
		a.ImageID != b.ImageID {
		return fmt.Errorf("%s for claim %s (%s), type %s, image %q; was %s for %s (%s), %s, %q", b.ProviderID,
			b.ClaimName,
			b.ClaimUID, b.Type, b.ImageID, a.ProviderID, a.ClaimName, a.ClaimUID, a.Type, a.ImageID)
	}
	if a.Price != b.Price || a.Terminating != b.Terminating {
		return fmt.Errorf("price %v, terminating %v; was %v, %v", b.Price, b.Terminating, a.Price, a.Terminating)
	}
	for key, value := range a.Labels {
		if b.Labels[key] != value {
			return fmt.Errorf("label %s is %q; was %q", key, b.Labels[key], value)
		}
	}
	if !equal(a.Capacity, b.Capacity) || !equal(a.Allocatable, b.Allocatable) {
		return fmt.Errorf("capacity %v, allocatable %v; was %v, %v", b.Capacity, b.Allocatable, a.Capacity,
			a.Allocatable)
	}
	return nil
}

func unknown(ctx context.Context, w *world) error {
	// The id of an instance that is gone is one that the provider itself can read, unlike anything made up here.
	created, err := w.create(ctx)
	if err != nil {
		return err
	}
	if err := w.end(ctx, created); err != nil {
		return err
	}
	return w.isGone(ctx, created)
}

// isGone looks whether every way to find the instance says that it isn't there.
func (w *world) isGone(ctx context.Context, i *cloudprovider.Instance) error {
	id := i.ProviderID
	_, err := w.Provider.Get(ctx, id)
	if err := saysNotFound("Get", id, err); err != nil {
		return err
	}
	if err := saysNotFound("Delete", id, w.Provider.Delete(ctx, id, i.Owner())); err != nil {
		return err
	}
	all, err := w.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("listing instances: %w", err)
	}
	for _, i := range all {
		if i.ProviderID == id {
			return fmt.Errorf("the List has %s, which is gone", id)
		}
	}
	return nil
}

func saysNotFound(call, id string, err error) error {
	notFound, ok := errors.AsType[*cloudprovider.NotFoundError](err)
	if !ok {
		return fmt.Errorf("%s of %s, which is gone, returned %v; want a NotFoundError", call, id, err)
	}
	if notFound.ProviderID != id {
		return fmt.Errorf("%s of %s says that %q was not found", call, id, notFound.ProviderID)
	}
	return nil
}

func deleteEnds(ctx context.Context, w *world) error {
	doomed, err := w.create(ctx)
	if err != nil {
		return err
	}
	spared, err := w.create(ctx)
	if err != nil {
		return err
	}
	if err := w.end(ctx, doomed); err != nil {
		return err
	}
	if err := w.isGone(ctx, doomed); err != nil {
		return err
	}
	if err := w.found(ctx, spared); err != nil {
		return fmt.Errorf("after the end of another instance: %w", err)
	}
	return w.listed(ctx, 1)
}

// endsForItsOwner asks in the name of others: a claim with the same name, another claim that has an instance, and
// nobody.
func endsForItsOwner(ctx context.Context, w *world) error {
	mine, err := w.create(ctx)
	if err != nil {
		return err
	}
	other, err := w.create(ctx)
	if err != nil {
		return err
	}
	for _, wrong := range []cloudprovider.Owner{{ClaimName: mine.ClaimName,
		ClaimUID: "00000000-0000-4000-8000-000000000000"}, other.Owner(), {}} {
		err := w.Provider.Delete(ctx, mine.ProviderID, wrong)
		refusal, ok := errors.AsType[*cloudprovider.NotOwnedError](err)
		if !ok {
			return fmt.Errorf("a Delete of %s, which belongs to %s, for %s returned %v; want a NotOwnedError",
				mine.ProviderID, mine.Owner(), wrong, err)
		}
		if refusal.ProviderID != mine.ProviderID || refusal.Owner != mine.Owner() {
			return fmt.Errorf("a Delete of %s, which belongs to %s, for %s says that %s belongs to %s", mine.ProviderID,
				mine.Owner(), wrong, refusal.ProviderID, refusal.Owner)
		}
		if err := w.found(ctx, mine); err != nil {
			return fmt.Errorf("after a Delete for %s, which does not own it: %w", wrong, err)
		}
	}
	if err := w.end(ctx, mine); err != nil {
		return err
	}
	return w.isGone(ctx, mine)
}

func killed(ctx context.Context, w *world) error {
	if w.Kill == nil {
		return noHook("Kill")
	}
	created, err := w.create(ctx)
	if err != nil {
		return err
	}
	if err := w.Kill(ctx, created.ProviderID); err != nil {
		return fmt.Errorf("killing %s: %w", created.ProviderID, err)
	}
	return w.isGone(ctx, created)
}

func noDrift(ctx context.Context, w *world) error {
	claim := w.claim()
	created, err := w.Provider.Create(ctx, claim)
	if err != nil {
		return fmt.Errorf("creating an instance: %w", err)
	}
	claim.Status.ProviderID = created.ProviderID
	claim.Status.ImageID = created.ImageID
	reason, err := w.Provider.Drifted(ctx, claim)
	if err != nil {
		return fmt.Errorf("asking for drift: %w", err)
	}
	if reason != "" {
		return fmt.Errorf("a new instance has drifted: %s", reason)
	}
	return nil
}
