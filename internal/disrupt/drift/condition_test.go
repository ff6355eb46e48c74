package drift

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/require"
)

// told writes what is to be written on claims.
func told(commands []command.Command) string {
	var parts []string
	for _, c := range commands {
		set := c.(command.SetClaim)
		for _, cond := range set.Conditions {
			parts = append(parts, fmt.Sprintf("%s %s=%s %s", set.Claim, cond.Type, cond.Status, cond.Reason))
		}
	}
	return strings.Join(parts, "; ")
}

// In how many ways a node can be other than what is asked for.
func TestDrift(t *testing.T) {
	cases := []struct {
		name   string
		change func(h *disrupttest.House)
		want   string
	}{
		{"nothing", func(h *disrupttest.House) {}, ""},
		{"the template has changed", func(h *disrupttest.House) {
			h.Claim.Hash, h.Pool.Hash, h.Claim.HashVersion, h.Pool.HashVersion = "1", "2", "v3", "v3"
		}, PoolDrifted},
		{"the template is the same", func(h *disrupttest.House) {
			h.Claim.Hash, h.Pool.Hash, h.Claim.HashVersion, h.Pool.HashVersion = "1", "1", "v3", "v3"
		}, ""},
		{"hashes that can't be compared", func(h *disrupttest.House) {
			h.Claim.Hash, h.Pool.Hash, h.Claim.HashVersion, h.Pool.HashVersion = "1", "2", "v2", "v3"
		}, ""},
		{"no hash of the pool", func(h *disrupttest.House) {
			h.Claim.Hash, h.Claim.HashVersion, h.Pool.HashVersion = "1", "v3", "v3"
		}, ""},
		{"a label is asked for, and there is no node", func(h *disrupttest.House) {
			h.Pool.Template.Requirements = require.Set{}.With("team", require.Only("red"))
			h.S.Nodes = nil
		}, RequirementsDrifted},
		{"no hash", func(h *disrupttest.House) {
			h.Pool.Hash, h.Claim.HashVersion, h.Pool.HashVersion = "2", "v3", "v3"
		}, ""},
		{"other types are asked for", func(h *disrupttest.House) {
			h.Pool.Template.Requirements = require.Set{}.With(cluster.InstanceTypeLabel, require.Only("small"))
		}, RequirementsDrifted},
		{"such types are asked for", func(h *disrupttest.House) {
			h.Pool.Template.Requirements = require.Set{}.With(cluster.InstanceTypeLabel, require.Only("small", "large"))
		}, ""},
		{"other types are asked for, in a pool that can't be read", func(h *disrupttest.House) {
			h.Pool.Template.Requirements = require.Set{}.With(cluster.InstanceTypeLabel, require.Only("small"))
			h.Pool.Problems = []cluster.Problem{{Field: "spec"}}
		}, ""},
		{"a label is asked for", func(h *disrupttest.House) {
			h.Pool.Template.Requirements = require.Set{}.With("team", require.Only("red"))
		}, RequirementsDrifted},
		{"a label that its node has", func(h *disrupttest.House) {
			h.Pool.Template.Requirements = require.Set{}.With("team", require.Only("red"))
			h.Node.Labels = cluster.LabelsOf(map[string]string{"team": "red"})
		}, ""},
		{"a label is ruled out that it lacks", func(h *disrupttest.House) {
			none, _ := require.Make(require.NotIn, []string{"red"})
			h.Pool.Template.Requirements = require.Set{}.With("team", none)
		}, ""},
		{"its type is no longer sold", func(h *disrupttest.House) {
			h.Claim.Labels = disrupttest.LabelsFor("tiny", "a", disrupt.OnDemand)
		}, TypeNotFound},
		{"its type is not sold there", func(h *disrupttest.House) {
			h.Claim.Labels = disrupttest.LabelsFor("large", "z", disrupt.OnDemand)
		}, TypeNotFound},
		{"its type is sold out", func(h *disrupttest.House) {
			h.Pool.Catalog = h.Pool.Catalog.Without(func(*cluster.Offering) bool { return true })
		}, ""},
		{"a reservation that has ended", func(h *disrupttest.House) {
			h.Claim.Labels = disrupttest.LabelsFor("large", "a", disrupt.CapacityReserved)
		}, ""},
		{"its type is not sold, but it is new", func(h *disrupttest.House) {
			h.Claim.Labels, h.Claim.Created = disrupttest.LabelsFor("tiny", "a", disrupt.OnDemand),
				h.S.Now.Add(-59*time.Minute)
		}, ""},
		{"its type is not sold, and it is an hour old", func(h *disrupttest.House) {
			h.Claim.Labels, h.Claim.Created = disrupttest.LabelsFor("tiny", "a", disrupt.OnDemand),
				h.S.Now.Add(-time.Hour)
		}, TypeNotFound},
		{"what is sold is not known", func(h *disrupttest.House) {
			h.Claim.Labels, h.Pool.Catalog = disrupttest.LabelsFor("tiny", "a", disrupt.OnDemand), nil
		}, ""},
		{"the cloud says so", func(h *disrupttest.House) { h.Claim.DriftedFrom = "AMIDrift" }, "AMIDrift"},
		{"the template comes first", func(h *disrupttest.House) {
			h.Claim.DriftedFrom, h.Claim.Hash, h.Pool.Hash = "AMIDrift", "1", "2"
		}, PoolDrifted},
		{"not launched", func(h *disrupttest.House) { h.Claim.Conditions, h.Claim.DriftedFrom = nil, "AMIDrift" }, ""},
		{"no pool", func(h *disrupttest.House) { h.Claim.Pool, h.Claim.DriftedFrom = "", "AMIDrift" }, ""},
	}
	for _, c := range cases {
		h := disrupttest.NewHouse()
		c.change(h)
		if got := Of(h.S.Seal(), h.Claim); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What a claim says about itself, and when it is changed.
func TestWhatClaimsAreTold(t *testing.T) {
	const yes, no = "c Consolidatable=True Consolidatable", "c Consolidatable= "
	cases := []struct {
		name   string
		change func(h *disrupttest.House)
		want   string
		wake   time.Duration
	}{
		{"quiet", func(h *disrupttest.House) {}, yes, 0},
		{"quiet, and says so", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
		}, "", 0},
		{"quiet since a moment", func(h *disrupttest.House) {
			h.Pool.ConsolidateAfter.For = time.Hour - time.Second
		}, "", 9 * time.Second},
		{"not quiet", func(h *disrupttest.House) {
			h.Pool.ConsolidateAfter.For = time.Hour + time.Minute
		}, "", time.Minute + 10*time.Second},
		{"no longer quiet, and the event is written", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
			h.Pool.ConsolidateAfter.For, h.Claim.SavedPodEvent = time.Hour+time.Minute, h.Claim.LastPodEvent
		}, no, time.Minute + 10*time.Second},
		{"no longer quiet, and the event is not written yet", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
			h.Pool.ConsolidateAfter.For = time.Hour + time.Minute
		}, "", time.Minute + 10*time.Second},
		{"never", func(h *disrupttest.House) { h.Pool.ConsolidateAfter.Never = true }, "", 0},
		{"never, but says so", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
			h.Pool.ConsolidateAfter.Never = true
		}, no, 0},
		{"not initialized", func(h *disrupttest.House) { h.Claim.Conditions = h.Claim.Conditions[:2] }, "", 0},
		{"a static pool", func(h *disrupttest.House) { h.Pool.Static = true }, "", 0},
		{"deleting", func(h *disrupttest.House) { h.Claim.Deleting = h.S.Now }, "", 0},
		{"asked for", func(h *disrupttest.House) { h.Claim.Expected = true }, "", 0},
		{"drifted", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
			h.Claim.DriftedFrom = "AMIDrift"
		}, "c Drifted=True AMIDrift", 0},
		{"drifted in another way", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
			h.Say(cluster.Drifted, PoolDrifted)
			h.Claim.DriftedFrom = "AMIDrift"
		}, "c Drifted=True AMIDrift", 0},
		{"drifted, and says so", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
			h.Say(cluster.Drifted, "AMIDrift")
			h.Claim.DriftedFrom = "AMIDrift"
		}, "", 0},
		{"no longer drifted", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
			h.Say(cluster.Drifted, "AMIDrift")
		}, "c Drifted= ", 0},
		{"drifted again in the same way", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
			h.Claim.DriftedFrom = "AMIDrift"
			h.Claim.Conditions = append(h.Claim.Conditions, cluster.Condition{Type: cluster.Drifted,
				Status: cluster.False, Reason: "AMIDrift"})
		}, "c Drifted=True AMIDrift", 0},
		{"drifted as the cloud says, and what it sells is not known", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
			h.Claim.DriftedFrom, h.Pool.Catalog = "AMIDrift", nil
		}, "c Drifted=True AMIDrift", 0},
		{"drifted, and not launched", func(h *disrupttest.House) {
			h.Claim.Conditions = nil
			h.Say(cluster.Drifted, "AMIDrift")
		}, "c Drifted= ", 0},
		{"drifted for all that is known", func(h *disrupttest.House) {
			h.Say(cluster.Consolidatable, cluster.Consolidatable)
			h.Say(cluster.Drifted, TypeNotFound)
			h.Pool.Catalog = nil
		}, "", 0},
	}
	for _, c := range cases {
		h := disrupttest.NewHouse()
		c.change(h)
		commands, wake := ClaimConditions(h.S.Seal(), NewRollouts(h.S, disrupt.Settings{}), nil)
		if got := told(commands); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if c.wake == 0 && !wake.IsZero() || c.wake > 0 && !wake.Equal(h.S.Now.Add(c.wake)) {
			t.Errorf("%s: wake at %s, want in %s", c.name, wake, c.wake)
		}
	}
}

// What is written on a claim anyway is written together with it, and the plan that it came from stays as it was.
func TestClaimsAreWrittenOnce(t *testing.T) {
	h := disrupttest.NewHouse()
	h.Pool.ConsolidateAfter.For = 2 * time.Hour
	h.Say(cluster.Consolidatable, cluster.Consolidatable)
	h.Claim.DriftedFrom = "AMIDrift"
	room := make([]command.Condition, 1, 4)
	room[0] = command.Condition{Type: cluster.ConsistentState, Status: cluster.True}
	before := command.SetClaim{Claim: "c", Conditions: room, LastPodEvent: h.Claim.LastPodEvent}
	commands, _ := ClaimConditions(h.S.Seal(), NewRollouts(h.S, disrupt.Settings{}),
		[]command.Command{command.SetClaim{Claim: "b", LastPodEvent: h.S.Now}, before})
	if got := told(commands); len(commands) != 2 || got != "c ConsistentStateFound=True ; c Drifted=True AMIDrift; c "+
		"Consolidatable= " {
		t.Errorf("%d commands: %s", len(commands), got)
	}
	if commands[1].(command.SetClaim).LastPodEvent != h.Claim.LastPodEvent || room[:4][1].Type != "" {
		t.Errorf("the lifecycle's command was lost or changed: %+v", commands[1])
	}
}

// What a node has become is still for sale if some offering of its type is, in its zone and under its terms. What was
// reserved may have become on-demand.
func TestWhatIsStillForSale(t *testing.T) {
	catalog := cluster.NewCatalog([]cluster.Type{{Name: "large"}, {Name: "small"}}, []cluster.Offering{
		disrupttest.Offering(0, "large", "a", disrupt.OnDemand, 4), disrupttest.Offering(1, "small", "b",
			disrupt.Spot, 1)})
	label := func(kind, zone, terms string) (out cluster.Labels) {
		keys := []string{cluster.InstanceTypeLabel, cluster.ZoneLabel, cluster.CapacityTypeLabel}
		for i, value := range []string{kind, zone, terms} {
			if value != "" {
				out = out.With(keys[i], value)
			}
		}
		return out
	}
	for _, c := range []struct {
		kind, zone, terms string
		want              bool
	}{
		{"large", "a", disrupt.OnDemand, true}, {"large", "b", disrupt.OnDemand, false},
		{"large", "a", disrupt.Spot, false},
		{"large", "", disrupt.OnDemand, true}, {"large", "a", "", true}, {"large", "", "", true},
		{"large", "b", "", false},
		{"large", "a", disrupt.CapacityReserved, true}, {"large", "b", disrupt.CapacityReserved, false},
		{"small", "b", disrupt.CapacityReserved, false},
		{"large", "", disrupt.Spot, false}, {"small", "b", disrupt.Spot, true},
		{"medium", "a", disrupt.OnDemand, false},
	} {
		if got := inCatalog(catalog, &cluster.Claim{Labels: label(c.kind, c.zone, c.terms)}); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
