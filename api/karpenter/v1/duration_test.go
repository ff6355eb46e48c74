package v1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestNillableDurationKeepsTheText(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s": 0, "30s": 30 * time.Second, "60m": time.Hour, "1h": time.Hour, "1h30m": 90 * time.Minute,
		"720h": 720 * time.Hour,
	} {
		var d NillableDuration
		if err := json.Unmarshal([]byte(`"`+text+`"`), &d); err != nil {
			t.Fatalf("reading %s: %v", text, err)
		}
		if d.IsNever() || *d.Duration != want {
			t.Errorf("%s was read as %v, want %v", text, d.Duration, want)
		}
		back, err := json.Marshal(d)
		if err != nil || string(back) != `"`+text+`"` {
			t.Errorf("%s was written back as %s (%v)", text, back, err)
		}
	}
}

func TestNillableDurationNever(t *testing.T) {
	var d NillableDuration
	if err := json.Unmarshal([]byte(`"Never"`), &d); err != nil {
		t.Fatal(err)
	}
	if !d.IsNever() || d.IsZero() || d != NeverDuration() {
		t.Errorf("Never was read as %+v", d)
	}
	if back, err := json.Marshal(d); err != nil || string(back) != `"Never"` {
		t.Errorf("Never was written back as %s (%v)", back, err)
	}
}

func TestNillableDurationFromCode(t *testing.T) {
	if got := DurationOf(90 * time.Minute).String(); got != "1h30m0s" {
		t.Errorf("got %s", got)
	}
	if got := (NillableDuration{}).String(); got != Never {
		t.Errorf("a value that is not set reads %s, want %s", got, Never)
	}
}

func TestNillableDurationRefuses(t *testing.T) {
	for _, text := range []string{`"never"`, `"1d"`, `""`, `5`, `{}`, `"99999999999h"`} {
		var d NillableDuration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s was read as %v, want an error", text, d)
		}
	}
}

// A duration that code leaves alone must reach the API server as absent, so that the default of the schema applies,
// while Never must reach it as such.
func TestNillableDurationUnsetIsOmitted(t *testing.T) {
	unset, err := json.Marshal(NodeClaimSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(unset), "expireAfter") {
		t.Errorf("an unset expireAfter was written: %s", unset)
	}
	never, err := json.Marshal(NodeClaimSpec{ExpireAfter: NeverDuration()})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(never), `"expireAfter":"Never"`) {
		t.Errorf("an expireAfter of Never was lost: %s", never)
	}
}

func TestDeepCopyIsDeep(t *testing.T) {
	pool := &NodePool{}
	pool.Spec.Template.Labels = map[string]string{"team": "blue"}
	pool.Spec.Template.Spec.ExpireAfter = DurationOf(time.Hour)
	pool.Spec.Template.Spec.Requirements = []NodeSelectorRequirementWithMinValues{{Values: []string{"a"}}}

	twin := pool.DeepCopy()
	twin.Spec.Template.Labels["team"] = "red"
	*twin.Spec.Template.Spec.ExpireAfter.Duration = 0
	twin.Spec.Template.Spec.Requirements[0].Values[0] = "b"

	template := pool.Spec.Template
	if template.Labels["team"] != "blue" || *template.Spec.ExpireAfter.Duration != time.Hour ||
		template.Spec.Requirements[0].Values[0] != "a" {
		t.Errorf("changing the copy changed the original: %+v", template)
	}
}
