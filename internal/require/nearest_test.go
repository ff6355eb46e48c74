package require

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"NodeRepair", "NodeOverlay", "StaticCapacity", "ReservedCapacity", "zone", "KWOKNodeClass"}
	for word, want := range map[string]string{
		"NodeRepiar": "NodeRepair", "nodeRepair": "NodeRepair", "NodeRepairs": "NodeRepair",
		"StaticCapcity": "StaticCapacity", "Capacity": "",
		"NodeRepair": "", "": "", "zon": "", "zune": "zone", "OfTheFuture": "", "RevervedCapacities": "",
		"KwokNodeClass": "KWOKNodeClass", "kwoknodeclas": "KWOKNodeClass",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
