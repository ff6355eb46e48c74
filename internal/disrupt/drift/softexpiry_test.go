package drift

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

func TestSoftEndsAreSpread(t *testing.T) {
	p := &cluster.Pool{Overrides: cluster.DisruptionOverrides{SoftExpiry: 4 * time.Hour}}
	born := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	quarters := make(map[int]int)
	for i := range 300 {
		c := &cluster.Claim{UID: fmt.Sprint("uid", i), Created: born,
			ExpireAfter: cluster.NillableDuration{For: 24 * time.Hour}}
		at, soft := SoftExpiryTime(p, c)
		before := born.Add(24 * time.Hour).Sub(at)
		if !soft || before > 4*time.Hour || before < time.Hour {
			t.Fatalf("%s ends %s before its hard end", c.UID, before)
		}
		if again, _ := SoftExpiryTime(p, c); !again.Equal(at) {
			t.Fatalf("%s ends at %s and at %s", c.UID, at, again)
		}
		quarters[int(before/time.Hour)]++
	}
	for hour := 1; hour < 4; hour++ {
		if quarters[hour] < 70 {
			t.Errorf("only %d of 300 nodes end in hour %d before the hard end: %v", quarters[hour], hour, quarters)
		}
	}
	for _, c := range []*cluster.Claim{{ExpireAfter: cluster.NillableDuration{Never: true}}, {}} {
		if _, soft := SoftExpiryTime(p, c); soft {
			t.Errorf("a node that never expires ends softly: %+v", c.ExpireAfter)
		}
	}
}

// The time for going softly is never longer than a life, and there is none where the pool wants none.
func TestSoftEndsAreWithinALife(t *testing.T) {
	born := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	c := &cluster.Claim{UID: "uid", Created: born, ExpireAfter: cluster.NillableDuration{For: time.Hour}}
	at, soft := SoftExpiryTime(&cluster.Pool{Overrides: cluster.DisruptionOverrides{SoftExpiry: 48 * time.Hour}}, c)
	if !soft || at.Before(born) || at.After(born.Add(time.Hour)) {
		t.Errorf("a node that may live for an hour ends %s after it was born, softly %t", at.Sub(born), soft)
	}
	if _, soft := SoftExpiryTime(&cluster.Pool{}, c); soft {
		t.Error("a node ends softly whose pool does not want that")
	}
}
