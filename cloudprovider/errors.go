package cloudprovider

import (
	"errors"
	"fmt"
)

// NotFoundError says that an instance is gone, or was never there.
type NotFoundError struct{ ProviderID string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("instance %s not found", e.ProviderID) }

// NotOwnedError says that an instance was not ended, because it is not whose the caller took it for.
type NotOwnedError struct {
	ProviderID string
	// Want is whose the caller took it for, Owner whose it is.
	Want, Owner Owner
	// Cluster is the identity of the cluster whose it is, if it is another's than the caller's.
	Cluster string
}

func (e *NotOwnedError) Error() string {
	if e.Cluster != "" {
		return fmt.Sprintf("instance %s is left alone: it belongs to %s, not to %s of this cluster", e.ProviderID,
			e.Cluster, e.Want)
	}
	return fmt.Sprintf("instance %s is left alone: it belongs to %s, not to %s", e.ProviderID, e.Owner, e.Want)
}

// NoCapacityError says that the cloud can't sell right now what a claim asks for.
type NoCapacityError struct {
	// Exhausted lists the offerings that the cloud refused, so that the next plan can avoid them.
	Exhausted []OfferingRef
	Message   string
}

func (e *NoCapacityError) Error() string { return "no capacity: " + e.Message }

// OfferingRef names an offering: where and how an instance type is sold. In NoCapacityError.Exhausted and
// Instance.Refused an empty Type or Zone stands for all.
type OfferingRef struct {
	Type         string
	Zone         string
	CapacityType string
	// Within narrows it down to offerings whose labels have this value, such as the id of a reservation or of a
	// placement group, because there is capacity elsewhere; empty for all.
	Within string
	// Why is what people should know, and do, if the offering is refused for another reason than that too many want it:
	// with the cloud's own code, and the same words for all that have the reason in common. It does not tell offerings
	// apart.
	Why string
}

// NotReadyError says that the NodeClass can't be used yet.
type NotReadyError struct{ NodeClass, Message string }

func (e *NotReadyError) Error() string {
	return fmt.Sprintf("NodeClass %q is not ready: %s", e.NodeClass, e.Message)
}

// ThrottledError says that the cloud asks us to slow down.
type ThrottledError struct {
	Cause error
	// Queued says that the cloud has not been asked: the provider lets calls wait so that it need not refuse them, and
	// this one has not had its turn. It is asked for again and has it sooner then; nothing is wrong.
	Queued bool
}

func (e *ThrottledError) Error() string {
	if e.Queued {
		return fmt.Sprintf("waiting for a turn: %v", e.Cause)
	}
	return fmt.Sprintf("throttled by the cloud: %v", e.Cause)
}

func (e *ThrottledError) Unwrap() error { return e.Cause }

// UnauthorizedError says that the credentials don't allow the call.
type UnauthorizedError struct{ Cause error }

func (e *UnauthorizedError) Error() string { return fmt.Sprintf("not authorized: %v", e.Cause) }
func (e *UnauthorizedError) Unwrap() error { return e.Cause }

// IsNotFound reports whether the error, or one that it wraps, is a NotFoundError.
func IsNotFound(err error) bool { _, ok := errors.AsType[*NotFoundError](err); return ok }

// IsNotOwned reports whether the error, or one that it wraps, is a NotOwnedError.
func IsNotOwned(err error) bool { _, ok := errors.AsType[*NotOwnedError](err); return ok }

// IsNoCapacity reports whether the error, or one that it wraps, is a NoCapacityError.
func IsNoCapacity(err error) bool { _, ok := errors.AsType[*NoCapacityError](err); return ok }

// IsNotReady reports whether the error, or one that it wraps, is a NotReadyError.
func IsNotReady(err error) bool { _, ok := errors.AsType[*NotReadyError](err); return ok }

// IsThrottled reports whether the error, or one that it wraps, is a ThrottledError.
func IsThrottled(err error) bool { _, ok := errors.AsType[*ThrottledError](err); return ok }

// IsQueued reports whether the error, or one that it wraps, is a ThrottledError of a call that has only not had its
// turn yet.
func IsQueued(err error) bool { e, ok := errors.AsType[*ThrottledError](err); return ok && e.Queued }

// IsUnauthorized reports whether the error, or one that it wraps, is an UnauthorizedError.
func IsUnauthorized(err error) bool { _, ok := errors.AsType[*UnauthorizedError](err); return ok }
