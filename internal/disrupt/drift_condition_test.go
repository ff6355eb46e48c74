package disrupt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
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

func (h *house) say(kind, reason string) {
	h.claim.Conditions = append(h.claim.Conditions, cluster.Condition{Type: kind, Status: cluster.True, Reason: reason})
}

// In how many ways a node can be other than what is asked for.
func TestDrift(t *testing.T) {
	cases := []struct {
		name   string
		change func(h *house)
		want   string
	}{
		{"nothing", func(h *house) {}, ""},
		{"the template has changed", func(h *house) {
			h.claim.Hash, h.pool.Hash, h.claim.HashVersion, h.pool.HashVersion = "1", "2", "v3", "v3"
		}, PoolDrifted},
		{"the template is the same", func(h *house) {
			h.claim.Hash, h.pool.Hash, h.claim.HashVersion, h.pool.HashVersion = "1", "1", "v3", "v3"
		}, ""},
		{"hashes that can't be compared", func(h *house) {
			h.claim.Hash, h.pool.Hash, h.claim.HashVersion, h.pool.HashVersion = "1", "2", "v2", "v3"
		}, ""},
		{"no hash of the pool", func(h *house) {
			h.claim.Hash, h.claim.HashVersion, h.pool.HashVersion = "1", "v3", "v3"
		}, ""},
		{"a label is asked for, and there is no node", func(h *house) {
			h.pool.Template.Requirements = require.Set{}.With("team", require.Only("red"))
			h.s.Nodes = nil
		}, RequirementsDrifted},
		{"no hash", func(h *house) { h.pool.Hash, h.claim.HashVersion, h.pool.HashVersion = "2", "v3", "v3" }, ""},
		{"other types are asked for", func(h *house) {
			h.pool.Template.Requirements = require.Set{}.With(cluster.InstanceTypeLabel, require.Only("small"))
		}, RequirementsDrifted},
		{"such types are asked for", func(h *house) {
			h.pool.Template.Requirements = require.Set{}.With(cluster.InstanceTypeLabel, require.Only("small", "large"))
		}, ""},
		{"other types are asked for, in a pool that can't be read", func(h *house) {
			h.pool.Template.Requirements = require.Set{}.With(cluster.InstanceTypeLabel, require.Only("small"))
			h.pool.Problems = []cluster.Problem{{Field: "spec"}}
		}, ""},
		{"a label is asked for", func(h *house) {
			h.pool.Template.Requirements = require.Set{}.With("team", require.Only("red"))
		}, RequirementsDrifted},
		{"a label that its node has", func(h *house) {
			h.pool.Template.Requirements = require.Set{}.With("team", require.Only("red"))
			h.node.Labels = cluster.LabelsOf(map[string]string{"team": "red"})
		}, ""},
		{"a label is ruled out that it lacks", func(h *house) {
			none, _ := require.Make(require.NotIn, []string{"red"})
			h.pool.Template.Requirements = require.Set{}.With("team", none)
		}, ""},
		{"its type is no longer sold", func(h *house) {
			h.claim.Labels = labelsFor("tiny", "a", onDemand)
		}, TypeNotFound},
		{"its type is not sold there", func(h *house) {
			h.claim.Labels = labelsFor("large", "z", onDemand)
		}, TypeNotFound},
		{"its type is sold out", func(h *house) {
			h.pool.Catalog = h.pool.Catalog.Without(func(*cluster.Offering) bool { return true })
		}, ""},
		{"a reservation that has ended", func(h *house) {
			h.claim.Labels = labelsFor("large", "a", capacityReserved)
		}, ""},
		{"its type is not sold, but it is new", func(h *house) {
			h.claim.Labels, h.claim.Created = labelsFor("tiny", "a", onDemand), h.s.Now.Add(-59*time.Minute)
		}, ""},
		{"its type is not sold, and it is an hour old", func(h *house) {
			h.claim.Labels, h.claim.Created = labelsFor("tiny", "a", onDemand), h.s.Now.Add(-time.Hour)
		}, TypeNotFound},
		{"what is sold is not known", func(h *house) {
			h.claim.Labels, h.pool.Catalog = labelsFor("tiny", "a", onDemand), nil
		}, ""},
		{"the cloud says so", func(h *house) { h.claim.DriftedFrom = "AMIDrift" }, "AMIDrift"},
		{"the template comes first", func(h *house) {
			h.claim.DriftedFrom, h.claim.Hash, h.pool.Hash = "AMIDrift", "1", "2"
		}, PoolDrifted},
		{"not launched", func(h *house) { h.claim.Conditions, h.claim.DriftedFrom = nil, "AMIDrift" }, ""},
		{"no pool", func(h *house) { h.claim.Pool, h.claim.DriftedFrom = "", "AMIDrift" }, ""},
	}
	for _, c := range cases {
		h := newHouse()
		c.change(h)
		if got := DriftOf(h.s.Seal(), h.claim); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What a claim says about itself, and when it is changed.
func TestWhatClaimsAreTold(t *testing.T) {
	const yes, no = "c Consolidatable=True Consolidatable", "c Consolidatable= "
	cases := []struct {
		name   string
		change func(h *house)
		want   string
		wake   time.Duration
	}{
		{"quiet", func(h *house) {}, yes, 0},
		{"quiet, and says so", func(h *house) { h.say(cluster.Consolidatable, cluster.Consolidatable) }, "", 0},
		{"quiet since a moment", func(h *house) {
			h.pool.ConsolidateAfter.For = time.Hour - time.Second
		}, "", 9 * time.Second},
		{"not quiet", func(h *house) {
			h.pool.ConsolidateAfter.For = time.Hour + time.Minute
		}, "", time.Minute + 10*time.Second},
		{"no longer quiet, and the event is written", func(h *house) {
			h.say(cluster.Consolidatable, cluster.Consolidatable)
			h.pool.ConsolidateAfter.For, h.claim.SavedPodEvent = time.Hour+time.Minute, h.claim.LastPodEvent
		}, no, time.Minute + 10*time.Second},
		{"no longer quiet, and the event is not written yet", func(h *house) {
			h.say(cluster.Consolidatable, cluster.Consolidatable)
			h.pool.ConsolidateAfter.For = time.Hour + time.Minute
		}, "", time.Minute + 10*time.Second},
		{"never", func(h *house) { h.pool.ConsolidateAfter.Never = true }, "", 0},
		{"never, but says so", func(h *house) {
			h.say(cluster.Consolidatable, cluster.Consolidatable)
			h.pool.ConsolidateAfter.Never = true
		}, no, 0},
		{"not initialized", func(h *house) { h.claim.Conditions = h.claim.Conditions[:2] }, "", 0},
		{"a static pool", func(h *house) { h.pool.Static = true }, "", 0},
		{"deleting", func(h *house) { h.claim.Deleting = h.s.Now }, "", 0},
		{"asked for", func(h *house) { h.claim.Expected = true }, "", 0},
		{"drifted", func(h *house) {
			h.say(cluster.Consolidatable, cluster.Consolidatable)
			h.claim.DriftedFrom = "AMIDrift"
		}, "c Drifted=True AMIDrift", 0},
		{"drifted in another way", func(h *house) {
			h.say(cluster.Consolidatable, cluster.Consolidatable)
			h.say(cluster.Drifted, PoolDrifted)
			h.claim.DriftedFrom = "AMIDrift"
		}, "c Drifted=True AMIDrift", 0},
		{"drifted, and says so", func(h *house) {
			h.say(cluster.Consolidatable, cluster.Consolidatable)
			h.say(cluster.Drifted, "AMIDrift")
			h.claim.DriftedFrom = "AMIDrift"
		}, "", 0},
		{"no longer drifted", func(h *house) {
			h.say(cluster.Consolidatable, cluster.Consolidatable)
			h.say(cluster.Drifted, "AMIDrift")
		}, "c Drifted= ", 0},
		{"drifted again in the same way", func(h *house) {
			h.say(cluster.Consolidatable, cluster.Consolidatable)
			h.claim.DriftedFrom = "AMIDrift"
			h.claim.Conditions = append(h.claim.Conditions, cluster.Condition{Type: cluster.Drifted,
				Status: cluster.False, Reason: "AMIDrift"})
		}, "c Drifted=True AMIDrift", 0},
		{"drifted as the cloud says, and what it sells is not known", func(h *house) {
			h.say(cluster.Consolidatable, cluster.Consolidatable)
			h.claim.DriftedFrom, h.pool.Catalog = "AMIDrift", nil
		}, "c Drifted=True AMIDrift", 0},
		{"drifted, and not launched", func(h *house) {
			h.claim.Conditions = nil
			h.say(cluster.Drifted, "AMIDrift")
		}, "c Drifted= ", 0},
		{"drifted for all that is known", func(h *house) {
			h.say(cluster.Consolidatable, cluster.Consolidatable)
			h.say(cluster.Drifted, TypeNotFound)
			h.pool.Catalog = nil
		}, "", 0},
	}
	for _, c := range cases {
		h := newHouse()
		c.change(h)
		commands, wake := ClaimConditions(h.s.Seal(), NewRollouts(h.s, Settings{}), nil)
		if got := told(commands); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if c.wake == 0 && !wake.IsZero() || c.wake > 0 && !wake.Equal(h.s.Now.Add(c.wake)) {
			t.Errorf("%s: wake at %s, want in %s", c.name, wake, c.wake)
		}
	}
}

// What is written on a claim anyway is written together with it, and the plan that it came from stays as it was.
func TestClaimsAreWrittenOnce(t *testing.T) {
	h := newHouse()
	h.pool.ConsolidateAfter.For = 2 * time.Hour
	h.say(cluster.Consolidatable, cluster.Consolidatable)
	h.claim.DriftedFrom = "AMIDrift"
	room := make([]cluster.Condition, 1, 4)
	room[0] = cluster.Condition{Type: cluster.ConsistentState, Status: cluster.True}
	before := command.SetClaim{Claim: "c", Conditions: room, LastPodEvent: h.claim.LastPodEvent}
	commands, _ := ClaimConditions(h.s.Seal(), NewRollouts(h.s, Settings{}),
		[]command.Command{command.SetClaim{Claim: "b", LastPodEvent: h.s.Now}, before})
	if got := told(commands); len(commands) != 2 || got != "c ConsistentStateFound=True ; c Drifted=True AMIDrift; c "+
		"Consolidatable= " {
		t.Errorf("%d commands: %s", len(commands), got)
	}
	if commands[1].(command.SetClaim).LastPodEvent != h.claim.LastPodEvent || room[:4][1].Type != "" {
		t.Errorf("the lifecycle's command was lost or changed: %+v", commands[1])
	}
}

// What a node has become is still for sale if some offering of its type is, in its zone and under its terms. What was
// reserved may have become on-demand.
func TestWhatIsStillForSale(t *testing.T) {
	catalog := cluster.NewCatalog([]cluster.Type{{Name: "large"}, {Name: "small"}}, []cluster.Offering{
		offering(0, "large", "a", onDemand, 4), offering(1, "small", "b", spot, 1)})
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
		{"large", "a", onDemand, true}, {"large", "b", onDemand, false}, {"large", "a", spot, false},
		{"large", "", onDemand, true}, {"large", "a", "", true}, {"large", "", "", true}, {"large", "b", "", false},
		{"large", "a", capacityReserved, true}, {"large", "b", capacityReserved, false},
		{"small", "b", capacityReserved, false},
		{"large", "", spot, false}, {"small", "b", spot, true}, {"medium", "a", onDemand, false},
	} {
		if got := inCatalog(catalog, &cluster.Claim{Labels: label(c.kind, c.zone, c.terms)}); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
