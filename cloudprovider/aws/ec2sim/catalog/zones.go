package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

// Zone is an availability zone: its name in this account and the id that is the same in all.
type Zone struct{ Name, ID string }

// Regions lists the regions that have something for sale, sorted. Local Zones are none.
func Regions() []string {
	var out []string
	for _, place := range price.Places() {
		if _, ok := zonePrefix(place); ok {
			out = append(out, place)
		}
	}
	return out
}

// Zones lists a region's zones by name. Which letter stands for which id differs between real accounts; here az1 is a.
func Zones(region string) ([]Zone, error) {
	prefix, err := known(region)
	if err != nil {
		return nil, err
	}
	rows, err := readRows()
	if err != nil {
		return nil, err
	}
	digits := zoneDigits(prefix, rows)
	out := make([]Zone, 0, len(digits))
	for _, digit := range digits {
		out = append(out, Zone{Name: zoneName(region, digit), ID: fmt.Sprintf("%s-az%c", prefix, digit)})
	}
	return out, nil
}

// zonePrefix is what the ids of a region's zones begin with: use1 for us-east-1, usgw1 for us-gov-west-1. It is made of
// the region's first part, the initials of the others and its number. False for what is no region's name.
func zonePrefix(region string) (string, bool) {
	parts := strings.Split(region, "-")
	if len(parts) < 3 || len(parts) > 4 || (len(parts) == 4 && parts[1] != "gov") {
		return "", false
	}
	number := parts[len(parts)-1]
	if len(number) != 1 || number[0] < '1' || number[0] > '9' {
		return "", false
	}
	prefix := parts[0]
	for _, part := range parts[1 : len(parts)-1] {
		switch part {
		case "gov", "north", "south", "east", "west", "central":
			prefix += part[:1]
		case "northeast", "southeast", "northwest", "southwest":
			prefix += part[:1] + part[5:6]
		default:
			return "", false
		}
	}
	return prefix + number, true
}

// known is the prefix of a region's zone ids; an error for what is not in the catalog.
func known(region string) (string, error) {
	prefix, ok := zonePrefix(region)
	if !ok || !slices.Contains(price.Places(), region) {
		return "", fmt.Errorf("region %q is not one that the catalog knows; take one of %s", region,
			strings.Join(Regions(), ", "))
	}
	return prefix, nil
}

// zoneDigits are the numbers of a region's zones. The source lists zones for half of the regions; the others have
// three.
func zoneDigits(prefix string, rows []row) string {
	var digits []rune
	for i := range rows {
		digits = append(digits, []rune(rows[i].zones[prefix])...)
	}
	if len(digits) == 0 {
		return "123"
	}
	slices.Sort(digits)
	return string(slices.Compact(digits))
}

func zoneName(region string, digit rune) string { return region + string('a'+digit-'1') }

// zoneNames are the zones of the region that have the type. In a region without listed zones, all have what it prices.
// The list of zones is older than the newest types: those are in all zones of a region that has a price for them.
func (r *row) zoneNames(region, all string, prices *PriceList) []string {
	digits, listed := r.zones[prices.prefix]
	if !listed {
		if _, priced := prices.OnDemand(r.name); !priced || prices.listed && len(r.zones) > 0 {
			return nil
		}
		digits = all
	}
	out := make([]string, 0, len(digits))
	for _, digit := range digits {
		out = append(out, zoneName(region, digit))
	}
	return out
}
