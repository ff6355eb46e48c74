package podspec

import (
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/internal/resource"
)

// maxAmount is more than anything has of anything, and small enough that sums over a cluster don't overflow.
const maxAmount = 1 << 50

// amount reads a quantity in the unit of its dimension. Fractions round up, as kube-scheduler counts them; absurd
// amounts are cut off.
func amount(dim int, q apiresource.Quantity) int64 {
	scale := int64(1)
	if dim == resource.CPU {
		scale = 1000
	}
	switch {
	case q.CmpInt64(maxAmount/scale) >= 0:
		return maxAmount
	case q.CmpInt64(-maxAmount/scale) <= 0:
		return -maxAmount
	case dim == resource.CPU:
		return q.MilliValue()
	}
	return q.Value()
}

func oneSlot() *apiresource.Quantity { return apiresource.NewQuantity(1, apiresource.DecimalSI) }
