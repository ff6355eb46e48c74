package operator_test

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/tenon-sh/tenon/cloudprovider/kwok/kwokcloud"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/loop"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/operator"
)

// plantedVariable makes this test executable a controller whose planner fails on pods with the label app=poison. The
// program that people run has no such thing in it. Its value are the controller's arguments.
const plantedVariable = "TENON_TEST_PLANTED_CONTROLLER"

func TestPlantedController(t *testing.T) {
	given, asked := os.LookupEnv(plantedVariable)
	if !asked {
		t.Skip("this is for internal/e2e, which sets " + plantedVariable)
	}
	cmd := operator.NewCommandWith(loop.Planner{
		Make: func(s *cluster.Snapshot, policy plan.Policy, before *plan.Plan, found *disrupt.Proposal) plan.Plan {
			for _, p := range s.Pending() {
				if app, _ := p.Labels.Get("app"); app == "poison" {
					panic("planted for the test")
				}
			}
			return plan.Make(s, policy, before, found)
		},
	}, kwokcloud.New())
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd.SetArgs(strings.Fields(given))
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Fatal(err)
	}
}
