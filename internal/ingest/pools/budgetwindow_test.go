package pools

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/validate"
)

func opened(t *testing.T, schedule string, length time.Duration, now string) (bool, string) {
	t.Helper()
	budget, w := budgetOf(&v1.Budget{Nodes: "1", Schedule: &schedule, Duration: &metav1.Duration{Duration: length}})
	if budget.Broken {
		t.Fatalf("%q can't be read", schedule)
	}
	at, err := time.Parse(time.RFC3339, now)
	if err != nil {
		t.Fatal(err)
	}
	open, changes := w.stateAt(at)
	if changes.IsZero() {
		return open, "never"
	}
	return open, changes.UTC().Format("01-02 15:04")
}

func TestWindows(t *testing.T) {
	const nine = "CRON_TZ=America/New_York 0 9 * * *"
	for _, c := range []struct {
		what, schedule string
		length         time.Duration
		now            string
		open           bool
		changes        string
	}{
		{"in UTC", "0 9 * * *", time.Hour, "2026-06-01T09:30:00Z", true, "06-01 10:00"},
		{"its end is not in it", "0 9 * * *", time.Hour, "2026-06-01T10:00:00Z", false, "06-02 09:00"},
		{"in summer", nine, time.Hour, "2026-06-01T13:00:00Z", true, "06-01 14:00"},
		{"in winter", nine, time.Hour, "2026-12-01T13:00:00Z", false, "12-01 14:00"},
		{"the evening before clocks are put forward", nine, time.Hour, "2026-03-08T01:00:00Z", false, "03-08 13:00"},
		{"the evening before they are put back", nine, time.Hour, "2026-11-01T02:00:00Z", false, "11-01 14:00"},
		// 02:30 does not exist on 8 March 2026 in New York: clocks go from 01:59:59 to 03:00, which is 07:00 UTC.
		{"a time that is skipped", "CRON_TZ=America/New_York 30 2 * * *", time.Hour, "2026-03-08T06:59:00Z", false,
			"03-08 07:00"},
		{"it begins with the change", "CRON_TZ=America/New_York 30 2 * * *", time.Hour, "2026-03-08T07:30:00Z", true,
			"03-08 08:00"},
		{"the day after", "CRON_TZ=America/New_York 30 2 * * *", time.Hour, "2026-03-08T12:00:00Z", false,
			"03-09 06:30"},
		{"a time after the gap is not early", "CRON_TZ=America/New_York 0 3 * * *", time.Hour, "2026-03-08T06:00:00Z",
			false, "03-08 07:00"},
		// 01:30 comes twice on 1 November 2026: at 05:30 and at 06:30 UTC. Two windows of an hour are one of two.
		{"a time that comes twice", "CRON_TZ=America/New_York 30 1 * * *", time.Hour, "2026-11-01T05:45:00Z", true,
			"11-01 07:30"},
		{"twice, and short", "CRON_TZ=America/New_York 30 1 * * *", 10 * time.Minute, "2026-11-01T05:45:00Z", false,
			"11-01 06:30"},
		{"over the change it is as long as it says", "CRON_TZ=America/New_York 0 22 * * sat", 8 * time.Hour,
			"2026-03-08T09:59:00Z", true, "03-08 11:00"},
		{"windows that overlap are one", "0 * * * mon", 90 * time.Minute, "2026-06-01T00:10:00Z", true, "06-02 00:30"},
		{"windows that always overlap never close", "0 * * * *", 24 * time.Hour, "2026-06-01T00:10:00Z", true, "never"},
		{"each minute", "CRON_TZ=Europe/Berlin * * * * *", time.Hour, "2026-06-01T00:10:00Z", true, "never"},
		{"each minute of half a year", "* * * 1-6 *", time.Hour, "2026-06-01T00:10:00Z", true, "07-01 00:59"},
		{"just so that they touch", "0 0,12 * * *", 12 * time.Hour, "2026-06-01T00:10:00Z", true, "never"},
		{"the other side of the world", "CRON_TZ=Australia/Lord_Howe 0 9 * * *", time.Hour, "2026-10-04T00:00:00Z",
			false, "10-04 22:00"},
		{"half an hour that is skipped", "CRON_TZ=Australia/Lord_Howe 15 2 4 10 *", time.Hour, "2026-10-03T12:00:00Z",
			false, "10-03 15:30"},
	} {
		if open, changes := opened(t, c.schedule, c.length, c.now); open != c.open || changes != c.changes {
			t.Errorf("%s: open %v until %s, want %v until %s", c.what, open, changes, c.open, c.changes)
		}
	}
	if open, changes := opened(t, "CRON_TZ=Europe/Berlin 0 0 31 2 *", time.Hour, "2026-06-01T00:00:00Z"); open ||
		changes != "never" {
		t.Errorf("a day that never comes: open %v until %s", open, changes)
	}
}

// What is larger than any cluster is all of it, and no reason to stop.
func TestLargeBudgets(t *testing.T) {
	for text, want := range map[string]int{"7": 7, "2147483647": 1 << 30, "99999999999999": 1 << 30,
		"99999999999999999999999": 1 << 30} {
		if b, _ := budgetOf(&v1.Budget{Nodes: text}); b.Broken || b.Percent || b.Nodes < want {
			t.Errorf("%s is read as %+v", text, b)
		}
	}
	for _, text := range []string{"", "-1", "some", "%", "1.5"} {
		if b, _ := budgetOf(&v1.Budget{Nodes: text}); !b.Broken {
			t.Errorf("%q is read as %+v", text, b)
		}
	}
}

// A twin that asks minute by minute: the window is open if, within its length, the clock on the wall has shown a time
// of the schedule or jumped over one.
func TestWindowsAgreeWithTheClockOnTheWall(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	tick := func(at time.Time) bool { // 15 2 * * *
		wall, before := at.In(zone), at.Add(-time.Minute).In(zone)
		if wall.Hour() == 2 && wall.Minute() == 15 {
			return true
		}
		return before.Hour() < 2 && wall.Hour() > 2 && before.Day() == wall.Day()
	}
	for _, day := range []time.Time{time.Date(2026, 3, 28, 20, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 20, 0, 0, 0,
		time.UTC)} {
		schedule := "CRON_TZ=Europe/Berlin 15 2 * * *"
		_, w := budgetOf(&v1.Budget{Nodes: "1", Schedule: &schedule,
			Duration: &metav1.Duration{Duration: 30 * time.Minute}})
		for at := day; at.Before(day.Add(12 * time.Hour)); at = at.Add(time.Minute) {
			want := false // the window remembers its last answer; one that forgets must agree
			for back := range 30 {
				want = want || tick(at.Add(-time.Duration(back)*time.Minute))
			}
			if open, _ := w.stateAt(at); open != want {
				t.Fatalf("at %s: open %v, want %v", at.In(zone), open, want)
			}
		}
	}
}

// counted counts how often a schedule is asked.
type counted struct {
	cron.Schedule
	asked *int
}

func (c counted) Next(t time.Time) time.Time { *c.asked++; return c.Schedule.Next(t) }

// However often windows overlap, it is soon known that they are open; and what is not known that far ahead is asked
// again in time.
func TestWindowsAreFoundInAFewSteps(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 10, 30, 0, time.UTC)
	for _, length := range []time.Duration{time.Minute, 5 * time.Minute, time.Hour, 30 * 24 * time.Hour} {
		for _, schedule := range []string{"* * * * *", "CRON_TZ=Europe/Berlin * * * * *"} {
			_, w := budgetOf(&v1.Budget{Nodes: "0", Schedule: &schedule, Duration: &metav1.Duration{Duration: length}})
			asked := 0
			w.schedule = counted{w.schedule, &asked}
			if open, changes := w.stateAt(now); !open || !changes.IsZero() || asked > 3000 {
				t.Errorf("%s for %s: open %v until %v, after %d questions", schedule, length, open, changes, asked)
			}
		}
	}
	// Every minute until noon: that is less than a day, and more steps than are looked ahead from the morning before.
	schedule := "* 0-11 1 6 *"
	_, w := budgetOf(&v1.Budget{Nodes: "0", Schedule: &schedule, Duration: &metav1.Duration{Duration: time.Minute}})
	schedule = "* * 1-2 6 *"
	_, two := budgetOf(&v1.Budget{Nodes: "0", Schedule: &schedule, Duration: &metav1.Duration{Duration: time.Minute}})
	for at := now; at.Before(now.Add(3 * 24 * time.Hour)); at = at.Add(10 * time.Minute) {
		if open, _ := w.stateAt(at); open != (at.Day() == 1 && at.Hour() < 12) {
			t.Fatalf("half a day, at %s: open %v", at, open)
		}
		if open, _ := two.stateAt(at); open != (at.Day() <= 2) {
			t.Fatalf("two days, at %s: open %v", at, open)
		}
	}
}

// Pools are written often, their status above all: what is known of their windows is kept for as long as their budgets
// are.
func TestWindowsOutliveAWriteOfThePool(t *testing.T) {
	schedule, now := "* * * * *", time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	read := func(nodes string, generation int64, old *Entry) *Entry {
		p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", Generation: generation}}
		p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: nodes, Schedule: &schedule,
			Duration: &metav1.Duration{Duration: time.Hour}}}
		e, _ := Read(p, old, validate.Labels{}, func(corev1.ResourceList) (l cluster.Limits) {
			return l
		})
		return e
	}
	e := read("1", 1, nil)
	e.BudgetsAt(now)
	known := e.windows[0].until
	e = read("1", 2, e)
	if got := e.windows[0].until; known.IsZero() || !got.Equal(known) {
		t.Errorf("known until %v, and %v after a write", known, got)
	}
	if got := e.BudgetsAt(now); len(got) != 1 || !got[0].Active || got[0].Nodes != 1 {
		t.Errorf("budgets %+v", got)
	}
	if got := read("2", 3, e).BudgetsAt(now)[0].Nodes; got != 2 {
		t.Errorf("the budget is %d, want 2", got)
	}
}
