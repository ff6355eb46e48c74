package offerings

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/command"
)

// TestShortageBacksOffAndIsForgiven tells stories of one offering: r is a refusal, +30s lets time pass, and what
// follows an equals sign is how long the offering is shut from then on; "trial" if it may be bought as a probe, "free"
// if nothing is held against it.
func TestShortageBacksOffAndIsForgiven(t *testing.T) {
	for _, story := range []string{
		"=free r =30s",
		"r +29s =1s +1s =trial",
		"r +30s =trial r =1m0s +1m r =2m0s +2m r =4m0s +4m r =8m0s +8m r =15m0s +15m r =15m0s",
		"r r r =30s +10s r =20s",                           // refused together
		"r +30s =trial +29s =trial +1s =free r =30s",       // left alone for as long as its wait was
		"r +30s r +1m =trial +59s r =2m0s",                 // not yet forgiven
		"r +30s r +1m =trial +1m =trial r =1m0s",           // one doubling is forgiven
		"r +30s r +1m =trial +90s =free",                   // and then the other
		"r +30s r +1m r +2m =trial +2m =trial +1m r =1m0s", // two of three
		"r +30s r +1m r +2m =trial +2m +1m +29s =trial +1s =free",
		"r +10h =free r =30s",
	} {
		m, now := newShortages(), time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
		key := command.UnavailableOffering{Type: "m", Zone: "z", CapacityType: "spot"}
		state := func() string {
			m.Update(now)
			switch s := m.all[key]; {
			case s == nil:
				return "free"
			case s.probing:
				return "trial"
			default:
				return s.until.Sub(now).String()
			}
		}
		for i, word := range strings.Fields(story) {
			switch {
			case word == "r":
				m.Refuse([]command.UnavailableOffering{key}, now)
			case word[0] == '+':
				d, err := time.ParseDuration(word[1:])
				if err != nil {
					t.Fatal(err)
				}
				now = now.Add(d)
			case state() != word[1:]:
				t.Errorf("%s: word %d: %s", story, i+1, state())
			}
		}
	}
}
