package plan_test

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

// replayed says how the plan that is made from a snapshot file of the case differs from the plan that was made of the
// case itself; nothing if it does not.
func replayed(c *replay.Case, want *plan.Plan) string {
	var file bytes.Buffer
	if err := replay.Write(&file, c); err != nil {
		return err.Error()
	}
	back, err := replay.Read(&file, replay.DefaultLimits())
	if err != nil {
		return err.Error()
	}
	answer := back.Run()
	if answer.Panic != "" {
		return answer.Panic + "\n" + answer.Stack
	}
	got := &answer.Plan
	for _, pair := range []struct {
		what       string
		have, want any
	}{
		{"commands", got.Commands, want.Commands}, {"assignments", got.Placement.Assigned, want.Placement.Assigned},
		{"new nodes", got.Placement.Bins, want.Placement.Bins}, {"unplaced pods", got.Placement.Unplaced,
			want.Placement.Unplaced},
		{"price", [2]float64{got.Placement.Price, got.Placement.Bound}, [2]float64{want.Placement.Price,
			want.Placement.Bound}},
		{"moves", got.Begun, want.Begun}, {"moves given up", got.GivenUp, want.GivenUp},
		{"moves passed over", got.NotBegun, want.NotBegun},
		{"time to look again", got.WakeAt, want.WakeAt}, {"notes", got.Notes, want.Notes}, {"haste", got.PlanSoon,
			want.PlanSoon},
	} {
		if !reflect.DeepEqual(pair.have, pair.want) {
			return fmt.Sprintf("the plan from the file has other %s: %+v instead of %+v", pair.what,
				pair.have, pair.want)
		}
	}
	return ""
}
