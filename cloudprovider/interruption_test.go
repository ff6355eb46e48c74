package cloudprovider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func TestInterruptionText(t *testing.T) {
	for _, c := range []struct {
		text string
		want cloudprovider.Interruption
	}{
		{"", cloudprovider.Interruption{}},
		{"RebalanceRecommendation", cloudprovider.Interruption{Kind: cloudprovider.RebalanceRecommendation}},
		{"SpotInterruption 2026-03-01T12:00:00Z", cloudprovider.Interruption{Kind: cloudprovider.SpotInterruption,
			Deadline: noon()}},
		{"InstanceUnhealthy force", cloudprovider.Interruption{Kind: cloudprovider.InstanceUnhealthy, Force: true}},
		{"Preempted 2026-03-01T12:00:00Z force", cloudprovider.Interruption{Kind: "Preempted", Deadline: noon(),
			Force: true}},
	} {
		got, err := cloudprovider.ParseInterruption(c.text)
		if err != nil || got != c.want {
			t.Errorf("%q is %+v, %v; want %+v", c.text, got, err, c.want)
		}
		if c.want.String() != c.text {
			t.Errorf("%+v is written %q, want %q", c.want, c.want.String(), c.text)
		}
	}
}

func TestInterruptionTextOfPeople(t *testing.T) {
	got, err := cloudprovider.ParseInterruption("  Preempted   2026-03-01T13:00:00+01:00 ")
	if err != nil || !got.Deadline.Equal(noon()) || got.Kind != "Preempted" {
		t.Errorf("got %+v, %v", got, err)
	}
	for text, word := range map[string]string{"SpotInterruption soon": "soon", "a-b": "a-b",
		"SpotInterruption 12:00": "12:00", "{}": "{}"} {
		if _, err := cloudprovider.ParseInterruption(text); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q gives %v, which does not name %q", text, err, word)
		}
	}
}

func TestInterruptionUrgency(t *testing.T) {
	advice := cloudprovider.Interruption{Kind: cloudprovider.RebalanceRecommendation}
	late := cloudprovider.Interruption{Kind: cloudprovider.ScheduledChange, Deadline: noon().Add(time.Hour)}
	soon := cloudprovider.Interruption{Kind: cloudprovider.SpotInterruption, Deadline: noon()}
	dead := cloudprovider.Interruption{Kind: cloudprovider.InstanceUnhealthy, Force: true}
	order := []cloudprovider.Interruption{{}, advice, late, soon, dead}
	for i, less := range order {
		for _, more := range order[i:] {
			if less.Over(more) != more || more.Over(less) != more {
				t.Errorf("%q and %q: the second is more urgent, got %q and %q", less, more, less.Over(more),
					more.Over(less))
			}
		}
	}
	again := cloudprovider.Interruption{Kind: "Other", Deadline: noon()}
	if soon.Over(again) != soon {
		t.Errorf("what is equally urgent replaces what is known: %q", soon.Over(again))
	}
}
