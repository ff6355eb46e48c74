package resource

import (
	"fmt"
	"strconv"
	"strings"
)

// Format writes the amount of one dimension the way people write it in manifests: 500m, 1.5, 2, 3Gi.
func Format(dim int, amount int64) string {
	switch dim {
	case CPU:
		if amount > -1000 && amount < 1000 && amount != 0 {
			return strconv.FormatInt(amount, 10) + "m"
		}
		return strconv.FormatFloat(float64(amount)/1000, 'f', -1, 64)
	case Memory, Storage:
		return formatBytes(amount)
	}
	return strconv.FormatInt(amount, 10)
}

func formatBytes(n int64) string {
	units := []string{"Ei", "Pi", "Ti", "Gi", "Mi", "Ki"}
	for i, unit := range units {
		size := int64(1) << (10 * (len(units) - i))
		if n >= size || n <= -size {
			if n%size == 0 {
				return fmt.Sprintf("%d%s", n/size, unit)
			}
			return strconv.FormatFloat(float64(n)/float64(size), 'f', 1, 64) + unit
		}
	}
	return strconv.FormatInt(n, 10)
}

// String writes the amounts that are not zero, as in "cpu=2 memory=3Gi".
func (n *Names) String(v Vector) string {
	var parts []string
	for dim, amount := range v {
		if amount != 0 {
			parts = append(parts, n.Name(dim)+"="+Format(dim, amount))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}
