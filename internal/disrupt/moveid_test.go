package disrupt_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

func TestMoveIDsTellTheirReason(t *testing.T) {
	for _, reason := range append(disrupt.BudgetReasons(), command.Expired) {
		id := disrupt.MoveID(reason, []string{"b", "a"})
		if got := disrupt.MoveReason(id); got != reason {
			t.Errorf("%s says %q", id, got)
		}
		if other := disrupt.MoveID(reason, []string{"a", "b"}); other != id {
			t.Errorf("the order of the nodes changes the name: %s and %s", id, other)
		}
		if other := disrupt.MoveID(reason, []string{"ab"}); other == id {
			t.Errorf("other nodes have the same name %s", id)
		}
	}
	if got := disrupt.MoveReason("somebody-elses"); got != "" {
		t.Errorf("a foreign name says %q", got)
	}
}

// A claim is told from others even before it has a UID.
func TestIdentities(t *testing.T) {
	if a, b := disrupt.ClaimIdentity(&cluster.Claim{Name: "a"}),
		disrupt.ClaimIdentity(&cluster.Claim{Name: "b"}); a == "" || a == b {
		t.Errorf("%q and %q", a, b)
	}
}
