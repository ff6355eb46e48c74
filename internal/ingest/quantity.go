package ingest

import (
	"math"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/internal/resource"
)

// amount reads a quantity in the unit of its dimension. Fractions round up, as kube-scheduler counts them.
func amount(dim int, q apiresource.Quantity) int64 {
	if dim == resource.CPU {
		if q.Value() > math.MaxInt64/2000 {
			return math.MaxInt64 / 2
		}
		return q.MilliValue()
	}
	return min(q.Value(), math.MaxInt64/2)
}

func oneSlot() *apiresource.Quantity { return apiresource.NewQuantity(1, apiresource.DecimalSI) }
