package podspec

import (
	"testing"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/internal/resource"
)

func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		dim  int
		text string
		want int64
	}{
		{resource.CPU, "1", 1000}, {resource.CPU, "0.1", 100}, {resource.CPU, "1u", 1},
		{resource.CPU, "1e30", maxAmount},
		{resource.Memory, "1Gi", 1 << 30}, {resource.Memory, "1500m", 2},
		{resource.Memory, "123456789012345678901234567890", maxAmount},
		{resource.Memory, "-123456789012345678901234567890", -maxAmount}, {resource.Pods, "110", 110},
	} {
		if got := amount(c.dim, apiresource.MustParse(c.text)); got != c.want {
			t.Errorf("%s of dimension %d is %d, want %d", c.text, c.dim, got, c.want)
		}
	}
}
