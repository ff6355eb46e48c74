package cloud

import (
	"container/heap"
	"net/netip"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// dueAt is a time at which something happens to an instance.
type dueAt struct {
	at time.Time
	id string
}

// dueHeap keeps what happens next on top.
type dueHeap []dueAt

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(a, b int) bool {
	if h[a].at.Equal(h[b].at) {
		return h[a].id < h[b].id
	}
	return h[a].at.Before(h[b].at)
}
func (h dueHeap) Swap(a, b int) { h[a], h[b] = h[b], h[a] }

// Push adds to the heap.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(dueAt)) }

// Pop takes from the heap.
func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

func (w *World) schedule(at time.Time, id string) { heap.Push(&w.due, dueAt{at: at, id: id}) }

// advance lets everything happen that is due, in order, each at its own time. The lock is held.
func (w *World) advance(now time.Time) {
	for len(w.due) > 0 && !w.due[0].at.After(now) {
		next := heap.Pop(&w.due).(dueAt)
		if i := w.instances[next.id]; i != nil {
			w.step(i, next.at)
		}
	}
}

// step moves one instance on, if its time has come.
func (w *World) step(i *Instance, at time.Time) {
	switch {
	case i.State.Alive() && !i.InterruptAt.IsZero() && !at.Before(i.InterruptAt):
		w.end(i, at, "Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Instance terminated due to "+
			"spot capacity")
	case i.State == Pending && !at.Before(i.RunAt):
		i.become(Running, at)
		w.note(StateChanged, at, i)
	case i.State == ShuttingDown && !at.Before(i.EndAt):
		i.become(Terminated, at)
		w.release(i)
		w.schedule(i.EndAt.Add(w.cfg.Timing.Forget), i.ID)
		w.note(StateChanged, at, i)
	case i.State == Terminated && !at.Before(i.EndAt.Add(w.cfg.Timing.Forget)):
		w.forget(i)
	}
}

func (i *Instance) become(state State, at time.Time) {
	i.Before, i.State, i.ChangedAt = i.State, state, at
}

// end begins the end of an instance.
func (w *World) end(i *Instance, at time.Time, code, message string) {
	i.become(ShuttingDown, at)
	i.ReasonCode, i.ReasonMessage = code, message
	i.EndAt = at.Add(w.cfg.Timing.Shutdown)
	w.schedule(i.EndAt, i.ID)
	w.note(StateChanged, at, i)
}

// release gives back what an instance held: its addresses and its place in a reservation. Its pool counts living
// instances, so that needs nothing.
func (w *World) release(i *Instance) {
	for _, n := range i.Interfaces {
		s := w.subnets[n.Subnet]
		if s == nil {
			continue
		}
		for _, a := range n.Addresses {
			delete(s.used, netip.MustParseAddr(a))
		}
		for _, p := range n.Prefixes {
			for a := netip.MustParsePrefix(p).Addr(); netip.MustParsePrefix(p).Contains(a); a = a.Next() {
				delete(s.used, a)
			}
		}
	}
	if r := w.reserves[i.CapacityReservation]; r != nil {
		r.AvailableInstanceCount = aws.Int32(min(aws.ToInt32(r.TotalInstanceCount),
			aws.ToInt32(r.AvailableInstanceCount)+1))
	}
}

func (w *World) forget(i *Instance) {
	delete(w.instances, i.ID)
	delete(w.tags, i.ID)
	delete(w.tags, i.SpotRequest)
	for _, v := range i.Volumes {
		delete(w.tags, v.ID)
	}
	for _, n := range i.Interfaces {
		delete(w.tags, n.ID)
	}
}

// Ended is what a termination did to one instance.
type Ended struct {
	ID            string
	Before, After State
}

// Terminate ends instances: of each zone all or none. One that has ended already stays as it is. If an instance of a
// zone can't be ended the call fails, although those of other zones end.
func (w *World) Terminate(ids []string) ([]Ended, *wire.Error) {
	defer w.enter()()
	found, err := w.find(ids)
	if err != nil {
		return nil, err
	}
	stuck := map[string]bool{}
	var failure *wire.Error
	for _, i := range found {
		if aws.ToBool(i.Request.DisableApiTermination) || i.Protected {
			stuck[i.Zone] = true
			if failure == nil {
				failure = wire.Errorf("OperationNotPermitted", "The instance '%s' may not be terminated. Modify its "+
					"'disableApiTermination' instance attribute and try again.", i.ID)
			}
		}
	}
	now := w.clock.Now()
	ended := make([]Ended, 0, len(found))
	for _, i := range found {
		if stuck[i.Zone] {
			continue
		}
		before := i.State
		if i.State.Alive() {
			w.end(i, now, "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown")
		}
		ended = append(ended, Ended{ID: i.ID, Before: before, After: i.State})
	}
	if failure != nil {
		return nil, failure
	}
	return ended, nil
}

// Protect keeps an instance from being terminated by calls, or no longer does.
func (w *World) Protect(id string, on bool) *wire.Error {
	defer w.enter()()
	i, err := w.living(id)
	if err != nil {
		return err
	}
	i.Protected = on
	return nil
}

// living finds an instance that pends or runs. The lock is held.
func (w *World) living(id string) (*Instance, *wire.Error) {
	i := w.instances[id]
	if i == nil || !i.State.Alive() {
		return nil, noSuchInstances([]string{id})
	}
	return i, nil
}

// Withdraw ends an instance from AWS's side, with AWS's reason: a spot instance without warning, a host that failed.
func (w *World) Withdraw(id, code, message string) *wire.Error {
	defer w.enter()()
	i, err := w.living(id)
	if err != nil {
		return err
	}
	w.end(i, w.clock.Now(), code, message)
	return nil
}

// InterruptSpot warns a spot instance and ends it two minutes later (Timing.Warning).
func (w *World) InterruptSpot(id string) *wire.Error {
	defer w.enter()()
	i, err := w.living(id)
	if err != nil {
		return err
	}
	if i.Market != Spot {
		return wire.Errorf("InvalidParameterValue", "%s is no spot instance: only those are interrupted", id)
	}
	w.interrupt(i, SpotWarned)
	return nil
}

func (w *World) interrupt(i *Instance, kind ChangeKind) {
	now := w.clock.Now()
	i.InterruptAt = now.Add(w.cfg.Timing.Warning)
	w.schedule(i.InterruptAt, i.ID)
	w.note(kind, now, i)
}

// AdviseRebalance tells that a spot instance has an elevated risk of interruption.
func (w *World) AdviseRebalance(id string) *wire.Error {
	defer w.enter()()
	i, err := w.living(id)
	if err != nil {
		return err
	}
	if i.Market != Spot {
		return wire.Errorf("InvalidParameterValue", "%s is no spot instance: only those are advised to be rebalanced",
			id)
	}
	w.note(RebalanceAdvised, w.clock.Now(), i)
	return nil
}

// Kill makes a machine die while EC2 still calls it running: it answers nobody and fails both status checks.
func (w *World) Kill(id string) *wire.Error {
	defer w.enter()()
	i, err := w.living(id)
	if err != nil {
		return err
	}
	i.Dead = true
	w.impair(i, true, true)
	return nil
}

// Impair makes an instance fail or pass its status checks. The machine itself goes on.
func (w *World) Impair(id string, system, machine bool) *wire.Error {
	defer w.enter()()
	i, err := w.living(id)
	if err != nil {
		return err
	}
	w.impair(i, system, machine)
	return nil
}

func (w *World) impair(i *Instance, system, machine bool) {
	now := w.clock.Now()
	i.SystemImpaired, i.MachineImpaired = system, machine
	if system || machine {
		i.ImpairedSince = now
		w.note(InstanceImpaired, now, i)
		return
	}
	i.ImpairedSince = time.Time{}
	w.note(InstanceRecovered, now, i)
}

// ScheduleEvent plans something for an instance, such as system-maintenance or instance-retirement.
func (w *World) ScheduleEvent(id, code string, notBefore time.Time) *wire.Error {
	defer w.enter()()
	i, err := w.living(id)
	if err != nil {
		return err
	}
	event := w.newID("instance-event")
	delete(w.tags, event)
	i.Events = append(i.Events, Event{ID: event, Code: code, Description: "The instance is scheduled for " + code,
		NotBefore: notBefore, NotAfter: notBefore.Add(time.Hour)})
	w.note(EventScheduled, w.clock.Now(), i)
	return nil
}

// Discard unmakes instances as if they had never been: EC2 launches all that a call wants at least, or none.
func (w *World) Discard(ids []string) {
	defer w.enter()()
	for _, id := range ids {
		if i := w.instances[id]; i != nil {
			w.release(i)
			w.forget(i)
		}
	}
}
