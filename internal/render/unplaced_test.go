package render

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// What people read in the event of a pod without a place.
func TestSentences(t *testing.T) {
	inZone := &cluster.Pod{VolumePlaces: []cluster.VolumePlace{{Volume: "pv1", Key: cluster.ZoneLabel,
		Values: []string{"eu-west-1a"}}}}
	spread := &cluster.Rule{Kind: cluster.Spread, TopologyKey: cluster.ZoneLabel, MaxSkew: 1,
		Selectors: []cluster.Selector{{}}}
	zones := []string{"us-west-2c", "us-west-2a", "us-west-2b", "us-west-2d"}
	for name, c := range map[string]struct {
		unplaced schedule.Unplaced
		want     string
	}{
		"the planner may fail on it": {
			schedule.Unplaced{Failed: &cluster.Failure{Message: "boom", Group: 2, Until: time.Date(2030, 1, 1,
				12, 0, 0, 0,
				time.UTC)}},
			"Tenon's planner failed on some pods, which is a mistake in Tenon: boom. " +
				"It is not known yet whether pods like this one cause it. " +
				"Until that is known, and at most until 2030-01-01T12:00:00Z, they get no node",
		},
		"no pools": {schedule.Unplaced{}, "no NodePool is there to make a node for the pod; create one"},
		"no pools of ours": {schedule.Unplaced{OtherPools: 2}, "no NodePool of this controller is there to make a " +
			"node for " +
			"the pod; " +
			"create one, unless a node comes from 2 NodePools that belong to other controllers"},
		"another's pool beside ours": {schedule.Unplaced{OtherPools: 1,
			Pools: []schedule.PoolMiss{{Pool: "a", NotUsable: reason.Of(reason.PoolDeleting)}}},
			`NodePool "a": it is being deleted; 1 more NodePool belongs to another controller`},
		"one pool that can't be used": {schedule.Unplaced{Pools: []schedule.PoolMiss{{Pool: "a",
			NotUsable: reason.Of(reason.PoolDeleting)}}},
			`NodePool "a": it is being deleted`},
		"none can be used": {schedule.Unplaced{Pools: []schedule.PoolMiss{{Pool: "a",
			NotUsable: reason.Of(reason.ClassNotReady, "no subnets")},
			{Pool: "b", NotUsable: reason.Said("it is static")}}},
			`none of the 2 NodePools can be used now, as their conditions say; ` +
				`NodePool "a": its NodeClass is not ready: no subnets`},
		"the nearest first, the broken as a count": {schedule.Unplaced{Pools: []schedule.PoolMiss{
			{Pool: "broken", NotUsable: reason.Said(strings.Repeat("a long story ", 100))},
			{Pool: "dead", NotUsable: reason.Of(reason.PoolDeleting)},
			{Pool: "fenced", Taint: &cluster.Taint{Key: "gpu", Effect: cluster.NoSchedule}},
			{Pool: "other", Label: "team", Wanted: require.Only("red")},
			{Pool: "small", Types: 3, ByResources: 3, Resource: "cpu", Need: "5", Best: "4"},
			{Pool: "full", Types: 2, ByResources: 1, Resource: "cpu", Need: "5", Best: "4", ByLimit: 1,
				Limit: "cpu 40"}}},
			`NodePool "full": of 2 instance types 1 is too small (cpu: the pod needs 5, and it leaves 4 for pods), 1 ` +
				`would exceed the pool's limit of cpu 40; ` +
				`NodePool "small": none of the 3 instance types is large enough (cpu: the pod needs 5, the largest ` +
				`of them leaves 4 for pods); ` +
				`NodePool "other": the pod asks for label team In [red], which the pool neither sets nor allows; ` +
				`NodePool "fenced": the pod does not tolerate taint gpu:NoSchedule; 2 other NodePools can't be used ` +
				`now, as the conditions there say`},
		"all of many": {schedule.Unplaced{Pools: []schedule.PoolMiss{{Pool: "a", Types: 132, ByRequirement: 132,
			Key: "karpenter.sh/capacity-type"}}},
			`NodePool "a": none of the 132 instance types matches the pod's karpenter.sh/capacity-type`},
		"a rule for all": {schedule.Unplaced{Pools: []schedule.PoolMiss{{Pool: "a", Types: 132, ByTopology: 132,
			RuleMiss: schedule.RuleMiss{Rule: spread}}}},
			`NodePool "a": each of the 132 instance types would break the pod's spread over ` +
				`topology.kubernetes.io/zone (maxSkew 1)`},
		"sold out, and why": {schedule.Unplaced{Pools: []schedule.PoolMiss{{Pool: "a", Types: 3, ByOffering: 3,
			Advice: []string{"100% of the quota is used"}}}},
			`NodePool "a": none of the 3 instance types has capacity right now (100% of the quota is used)`},
		"minValues alone": {schedule.Unplaced{Pools: []schedule.PoolMiss{{Pool: "a", Types: 132, MinValues: "zone"}}},
			`NodePool "a": minValues of zone can't be met by 132 instance types`},
		"a contradiction": {schedule.Unplaced{Pools: []schedule.PoolMiss{{Pool: "a", Label: "team"}}},
			`NodePool "a": what the pod asks of label team contradicts itself: no value is left`},
		"a volume elsewhere": {schedule.Unplaced{Pod: inZone, Pools: []schedule.PoolMiss{{Pool: "a", Types: 132,
			ByRequirement: 132,
			Key:           cluster.ZoneLabel, ByVolume: true, Has: zones}}},
			`NodePool "a": volume pv1 is in eu-west-1a; this pool has us-west-2a–d`},
		"a volume elsewhere, by the pool's own requirement": {schedule.Unplaced{Pod: inZone,
			Pools: []schedule.PoolMiss{{Pool: "a", Label: cluster.ZoneLabel, Wanted: require.Only("eu-west-1a"),
				ByVolume: true,
				Has:      zones[:2]}}},
			`NodePool "a": volume pv1 is in eu-west-1a; this pool has us-west-2a, us-west-2c`},
		"the pod itself asks for the zone": {schedule.Unplaced{Pod: inZone,
			Pools: []schedule.PoolMiss{{Pool: "a", Types: 2, ByRequirement: 2, Key: cluster.ZoneLabel}}},
			`NodePool "a": none of the 2 instance types matches the pod's topology.kubernetes.io/zone`},
		"a zone that the pool has not": {
			schedule.Unplaced{Pools: []schedule.PoolMiss{{
				Pool: "a", Types: 2, ByRequirement: 2, Key: cluster.ZoneLabel, Wanted: require.Only("eu-west-1a"),
				Has: zones,
			}}},
			`NodePool "a": none of the 2 instance types matches the pod's topology.kubernetes.io/zone In ` +
				`[eu-west-1a] (this pool has us-west-2a–d)`},
		"a value that the pool has not": {
			schedule.Unplaced{Pools: []schedule.PoolMiss{{Pool: "a", Label: "team", Wanted: require.Only("red"),
				Has: []string{"green", "blue"}}}},
			`NodePool "a": the pod asks for label team In [red]; this pool has blue, green`},
		"a mistyped key": {
			schedule.Unplaced{Pools: []schedule.PoolMiss{{
				Pool: "a", Label: "kubernetes.io/archs", Wanted: require.Only("arm64"), Similar: "kubernetes.io/arch",
			}}},
			`NodePool "a": the pod asks for label kubernetes.io/archs, which the pool neither sets nor allows; ` +
				`did you mean kubernetes.io/arch?`},
	} {
		if got := Unplaced(&c.unplaced); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// An event holds 1,024 bytes: however many pools there are, the answer is not cut off.
func TestSentenceFitsIntoAnEvent(t *testing.T) {
	var u schedule.Unplaced
	for i := range 60 {
		u.Pools = append(u.Pools, schedule.PoolMiss{Pool: fmt.Sprintf("pool-%02d", i), Label: "team",
			Wanted: require.Only("red")},
			schedule.PoolMiss{Pool: fmt.Sprint("broken-", i), NotUsable: reason.Of(reason.PoolDeleting)})
	}
	u.Pools = append(u.Pools, schedule.PoolMiss{Pool: "z", Types: 2, ByOffering: 2})
	got := Unplaced(&u)
	first := `NodePool "z": none of the 2 instance types has capacity right now; NodePool "pool-00"`
	if !strings.HasPrefix(got, first) || len(got) > 1000 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if !strings.Contains(got, "other NodePools are farther from it; 60 other NodePools can't be used now") {
		t.Errorf("the rest is not counted: %s", got)
	}
}

// Zones become a range. Versions don't: v10–2 could be anything.
func TestListOfValues(t *testing.T) {
	for want, values := range map[string][]string{
		"":                          nil,
		"us-west-2a–d":              {"us-west-2d", "us-west-2a", "us-west-2b", "us-west-2c"},
		"us-west-2a, us-west-2b":    {"us-west-2a", "us-west-2b"},
		"zone-a, zone-b, zone-d":    {"zone-a", "zone-b", "zone-d"},
		"a, b, c":                   {"a", "b", "c"},
		"v10, v11, v12":             {"v10", "v11", "v12"},
		"v8, v9, v:":                {"v8", "v9", "v:"},
		"v1, v2, v3, v4 and 2 more": {"v1", "v2", "v3", "v4", "v5", "v6"},
		"east1a, west1b, west1c":    {"east1a", "west1b", "west1c"},
	} {
		if got := listValues(values); got != want {
			t.Errorf("%v: got %q, want %q", values, got, want)
		}
	}
}

// However many values a pod names, few are put into a sentence and no more than those are written.
func TestWanted(t *testing.T) {
	many := make([]string, 20_000)
	for i := range many {
		many[i] = fmt.Sprintf("v%05d", i)
	}
	notIn, _ := require.Make(require.NotIn, many)
	exists, _ := require.Make(require.Exists, nil)
	above, _ := require.Make(require.Gt, []string{"4"})
	for _, c := range []struct {
		values require.Values
		want   string
	}{
		{require.Only("b", "a"), "In [a, b]"},
		{require.Only("zone-a", "zone-b", "zone-c"), "In [zone-a, zone-b, zone-c]"},
		{require.Only(many...), "In [v00000, v00001, v00002, v00003 and 19996 more]"},
		{notIn, "NotIn [v00000, v00001, v00002, v00003 and 19996 more]"},
		{exists, "Exists"},
		{require.Anything(), "anything"},
		{above, "Gte [5]"},
		{require.Only("a" + strings.Repeat("é", 150)), "In [a" + strings.Repeat("é", 97) + "…"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := describeWanted(c.values)
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 4<<10 {
			t.Errorf("%s: %d bytes for a text of %d", got, bytes, len(got))
		}
		if got != c.want || !utf8.ValidString(got) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
