package pools

import (
	"time"

	"github.com/robfig/cron/v3"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/validate"
)

// window is when a budget holds: always, or for a while after each tick of a schedule.
type window struct {
	// schedule is the schedule for a clock that never changes; nil for always. zone is where the clock really hangs.
	schedule cron.Schedule
	zone     *time.Location
	length   time.Duration

	// What at last said, and from when until when it holds.
	open                 bool
	changes, from, until time.Time
}

func budgetOf(in *v1.Budget) (cluster.Budget, window) {
	out := cluster.Budget{}
	for _, r := range in.Reasons {
		out.Reasons = append(out.Reasons, string(r))
	}
	n, percent, ok := validate.ReadBudget(in.Nodes)
	out.Nodes, out.Percent, out.Broken = n, percent, !ok
	if in.Schedule == nil || in.Duration == nil {
		return out, window{}
	}
	w := window{length: in.Duration.Duration}
	fields, zone, err := validate.ReadSchedule(*in.Schedule)
	if err == nil {
		w.zone = zone
		w.schedule, err = cron.ParseStandard("CRON_TZ=UTC " + fields)
	}
	out.Broken = out.Broken || err != nil
	return out, w
}

// The end of windows that overlap is looked for over so many of them and so far ahead; one that is open for longer
// counts as one that never closes, until it is looked at again. Everybody else waits meanwhile.
const (
	longestLookAhead = 400 * 24 * time.Hour
	mostTicks        = 1000
	lookAheadAgain   = 24 * time.Hour
)

// stateAt says whether the window is open, and when that changes; never if that is the zero time. Windows that overlap
// are one.
func (w *window) stateAt(now time.Time) (open bool, changes time.Time) {
	if w.schedule == nil {
		return true, time.Time{}
	}
	if now.Before(w.from) || !now.Before(w.until) {
		w.open, w.changes, w.until = w.lookAhead(now)
		w.from = now
	}
	return w.open, w.changes
}

// lookAhead finds out what at tells, and until when that is sure.
func (w *window) lookAhead(now time.Time) (open bool, changes, sure time.Time) {
	tick := w.next(now.Add(-w.length))
	switch {
	case tick.IsZero():
		return false, tick, now.Add(lookAheadAgain)
	case tick.After(now):
		return false, tick, tick
	}
	limit := now.Add(longestLookAhead)
	for n := 0; n < mostTicks && !tick.After(limit); n++ {
		later := w.lastWithin(tick)
		if later.Equal(tick) {
			return true, tick.Add(w.length), tick.Add(w.length)
		}
		tick = later
	}
	return true, time.Time{}, cluster.Earlier(tick.Add(w.length), now.Add(lookAheadAgain))
}

// lastWithin is a late tick, if not always the last, of those that come before the window closes which the tick has
// opened; the tick itself if there is none.
func (w *window) lastWithin(tick time.Time) time.Time {
	end := tick.Add(w.length)
	for ahead := w.length - time.Minute; ; ahead /= 2 {
		if ahead < 30*time.Second { // ticks are a minute apart at least
			ahead = 0
		}
		if next := w.next(tick.Add(ahead)); !next.IsZero() && !next.After(end) {
			return next
		}
		if ahead == 0 {
			return tick
		}
	}
}

// next is the first tick after the time; zero if there is none. A tick that falls into an hour which is skipped when
// clocks are put forward comes when they are; one in an hour that comes twice comes twice. Between two changes the
// clock in the zone runs like one that never changes, so the schedule is asked about those stretches, one after the
// other: asked about the zone itself, the parser passes over ticks on days when clocks change by half an hour.
func (w *window) next(t time.Time) time.Time {
	at := t.In(w.zone)
	from := wallClock(at)
	for {
		tick := w.schedule.Next(from)
		if tick.IsZero() {
			return tick
		}
		_, change := at.ZoneBounds()
		due := at.Add(tick.Sub(wallClock(at)))
		if change.IsZero() || due.Before(change) {
			return due
		}
		// Between the two times on the wall lies what is skipped, if clocks are put forward.
		before, after := wallClock(change.Add(-time.Nanosecond).In(w.zone)), wallClock(change)
		if skipped := w.schedule.Next(before); !skipped.IsZero() && skipped.Before(after) {
			return change
		}
		at, from = change, after.Add(-time.Nanosecond)
	}
}

// wallClock is what the clock on the wall shows, as if it never changed.
func wallClock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}
