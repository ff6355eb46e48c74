package actuate

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tenon-sh/tenon/internal/command"
)

func TestEveryCommandCanBeCarriedOut(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	for _, c := range command.All() {
		if out := s.do(c); out.Err != nil && strings.Contains(out.Err.Error(), "no way to carry out") {
			t.Errorf("%T: %v", c, out.Err)
		}
	}
}
