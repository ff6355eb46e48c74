package cloud

import "strings"

// ZonesOf names the first n zones of a region as AWS does: us-west-2a with the id usw2-az1, and so on.
func ZonesOf(region string, n int) []Zone {
	zones := make([]Zone, n)
	for i := range zones {
		zones[i] = Zone{Name: region + string(rune('a'+i)), ID: shortRegion(region) + "-az" + string(rune('1'+i))}
	}
	return zones
}

// shortRegion turns us-west-2 into usw2 and ap-southeast-1 into apse1.
func shortRegion(region string) string {
	parts := strings.Split(region, "-")
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i == 0 || len(p) == 0:
			b.WriteString(p)
		case i == len(parts)-1:
			b.WriteString(p)
		default:
			b.WriteString(direction(p))
		}
	}
	return b.String()
}

// direction shortens the middle of a region's name; two directions in one word give two letters.
func direction(word string) string {
	for _, pair := range []string{"north", "south"} {
		if rest, ok := strings.CutPrefix(word, pair); ok && rest != "" {
			return pair[:1] + rest[:1]
		}
	}
	return word[:1]
}

// zoneByName finds a zone.
func (w *World) zoneByName(name string) (Zone, bool) {
	for _, z := range w.cfg.Zones {
		if z.Name == name {
			return z, true
		}
	}
	return Zone{}, false
}
