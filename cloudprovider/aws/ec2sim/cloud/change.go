package cloud

import "time"

// ChangeKind says what a Change is about.
type ChangeKind string

// The kinds of changes. The last four are what EC2 tells a queue besides the state.
const (
	StateChanged       ChangeKind = "state-changed"
	SpotWarned         ChangeKind = "spot-warned"
	RebalanceAdvised   ChangeKind = "rebalance-advised"
	EventScheduled     ChangeKind = "event-scheduled"
	ReservationWarned  ChangeKind = "reservation-warned"
	InstanceImpaired   ChangeKind = "instance-impaired"
	InstanceRecovered  ChangeKind = "instance-recovered"
	InstanceTagsEdited ChangeKind = "instance-tags-edited"
)

// Change is something that happened to an instance.
type Change struct {
	Kind     ChangeKind
	At       time.Time
	Instance Instance // as it was right after
}

// OnChange adds a function that hears of every change from now on, in order, one at a time. It may call the world.
func (w *World) OnChange(hook func(Change)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hooks = append(w.hooks, hook)
}

// note keeps a change for the hooks. The lock is held.
func (w *World) note(kind ChangeKind, at time.Time, i *Instance) {
	if len(w.hooks) > 0 {
		w.pending = append(w.pending, Change{Kind: kind, At: at, Instance: w.copyOf(i)})
	}
}

// tell hands the kept changes to the hooks. Whoever finds somebody else telling leaves the changes to them: a hook may
// call the world, which gets here again, and order is kept.
func (w *World) tell() {
	for w.telling.TryLock() {
		changes, hooks := w.takePending()
		for _, c := range changes {
			for _, hook := range hooks {
				hook(c)
			}
		}
		w.telling.Unlock()
		w.mu.Lock()
		more := len(w.pending) > 0
		w.mu.Unlock()
		if !more {
			return
		}
	}
}

func (w *World) takePending() ([]Change, []func(Change)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changes := w.pending
	w.pending = nil
	return changes, w.hooks
}
