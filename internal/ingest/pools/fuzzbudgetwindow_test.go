package pools

import (
	"fmt"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// FuzzWindow compares a budget's window with a dumb twin that looks at every minute: a minute is open if the schedule
// has ticked within the window's length before it. It goes over a change of clocks where the zone has one.
func FuzzWindow(f *testing.F) {
	f.Add(uint8(30), uint8(2), uint8(0), uint8(0), uint8(0), uint16(60), uint8(1), uint16(0))
	f.Add(uint8(0), uint8(9), uint8(0), uint8(0), uint8(3), uint16(480), uint8(2), uint16(700))
	f.Add(uint8(255), uint8(255), uint8(0), uint8(0), uint8(0), uint16(1), uint8(3), uint16(1400))
	f.Add(uint8(15), uint8(2), uint8(29), uint8(3), uint8(0), uint16(90), uint8(4), uint16(100))
	zones := []string{"UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe",
		"Africa/Casablanca", "America/Sao_Paulo", "Pacific/Apia"}
	changes := []time.Time{time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC), time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC),
		time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC),
		time.Date(2026, 10, 3, 15, 30, 0, 0, time.UTC), time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC),
		time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)}
	field := func(n uint8, least, most int) string {
		if n == 255 || n == 0 && least == 1 {
			return "*"
		}
		span := most - least + 1
		switch one := least + int(n)%span; n % 5 {
		case 4:
			return fmt.Sprintf("%d-%d", one, min(most, one+3))
		case 3:
			return fmt.Sprintf("%d,%d", one, least+(one+span/2)%span)
		case 2:
			return fmt.Sprintf("*/%d", 1+int(n)%7)
		default:
			return fmt.Sprint(one)
		}
	}
	f.Fuzz(func(t *testing.T, minute, hour, day, month, weekday uint8, length uint16, zone uint8, begin uint16) {
		name := zones[int(zone)%len(zones)]
		fields := fmt.Sprintf("%s %s %s %s %s", field(minute, 0, 59), field(hour, 0, 23), field(day, 1, 31),
			field(month, 1, 12), field(weekday, 0, 6))
		schedule, lasts := "CRON_TZ="+name+" "+fields, time.Duration(1+length%2000)*time.Minute
		b, w := budgetOf(&v1.Budget{Nodes: "1", Schedule: &schedule, Duration: &metav1.Duration{Duration: lasts}})
		if b.Broken {
			return
		}
		from := changes[int(zone)%len(changes)].Add(-time.Duration(begin%1440) * time.Minute)
		twin := newMinutes(t, name, fields, from.Add(-lasts-time.Hour), from.Add(30*time.Hour), lasts)
		for now := from; now.Before(from.Add(28 * time.Hour)); now = now.Add(7 * time.Minute) {
			open, until := w.stateAt(now)
			if want := twin.open(now); open != want {
				t.Fatalf("%q for %s at %s: open %v, the twin says %v", schedule, lasts, now, open, want)
			}
			if until.IsZero() || !until.Before(from.Add(29*time.Hour)) {
				continue
			}
			if !until.After(now) || twin.open(until) == open || twin.open(until.Add(-time.Minute)) != open {
				t.Fatalf("%q for %s at %s: open %v until %s, and the twin sees no change then", schedule, lasts, now,
					open, until)
			}
		}
	})
}

// minutes is the dumb twin: for each minute of a stretch of time, whether the schedule ticks.
type minutes struct {
	ticks []time.Time
	lasts time.Duration
}

// newMinutes asks of every minute whether its time on the wall is one of the schedule's. The minutes that are skipped
// when clocks are put forward are all asked at the moment of the change.
func newMinutes(t *testing.T, zone, fields string, from, to time.Time, lasts time.Duration) *minutes {
	t.Helper()
	place, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	wall, err := cron.ParseStandard("CRON_TZ=UTC " + fields)
	if err != nil {
		t.Skip("the parser takes no such schedule")
	}
	ticks := func(on time.Time) bool { return wall.Next(on.Add(-time.Second)).Equal(on) }
	m := &minutes{lasts: lasts}
	before := wallClock(from.Add(-time.Minute).In(place))
	for at := from.Truncate(time.Minute); at.Before(to); at = at.Add(time.Minute) {
		now, hit := wallClock(at.In(place)), false
		for on := before.Add(time.Minute); on.Before(now); on = on.Add(time.Minute) { // skipped
			hit = hit || ticks(on)
		}
		if hit || ticks(now) {
			m.ticks = append(m.ticks, at)
		}
		before = now
	}
	return m
}

func (m *minutes) open(at time.Time) bool {
	for _, tick := range m.ticks {
		if !at.Before(tick) && at.Before(tick.Add(m.lasts)) {
			return true
		}
	}
	return false
}
