package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/render"
)

// rollingFleet is MovingFleet with words for how far the replacement of drifted nodes has come. They come after a bar.
func rollingFleet(line string) *disrupttest.Fleet {
	line, more, _ := strings.Cut(line, "|")
	f := disrupttest.MovingFleet(strings.TrimSpace(line), nil)
	f.Pool.Generation, f.Pool.NodeClass.Generation = 3, 7
	f.Set.DriftWatch, f.Set.ReplacementTimeout = 10*time.Minute, 10*time.Minute
	for part := range strings.SplitSeq(more, ";") {
		if words := strings.Fields(part); len(words) > 1 {
			rolls(f, words[0], words[1], strings.Join(words[2:], " "))
		}
	}
	return f
}

func rolls(f *disrupttest.Fleet, who, verb, what string) {
	ago, _ := time.ParseDuration(what)
	since := f.Now.Add(-ago)
	switch verb {
	case "made": // so long ago in place of a drifted node that has gone, and up a minute later
		c := f.Claim(who)
		c.Replaces = disrupt.MoveID(command.Drifted, []string{"before-" + who}) + "-" + shortPoolName("default")
		c.Created, c.DriftReplacement = since, cluster.DriftReplacement{PoolGeneration: 3, ClassGeneration: 7}
		for i := range c.Conditions {
			c.Conditions[i].Since = since.Add(min(ago, time.Minute))
		}
	case "replaces": // another node that goes
		c := f.Claim(who)
		c.Replaces, c.Created = f.Claim(what).Move, f.Now.Add(-3*time.Minute)
		c.DriftReplacement = cluster.DriftReplacement{PoolGeneration: 3, ClassGeneration: 7}
	case "again": // the nth replacement in a row that has drifted
		c := f.Claim(who)
		c.DriftReplacement.DriftedInRow, _ = strconv.Atoi(what)
		c.DriftedFrom = "AMIDrift"
		f.Say(who, cluster.Drifted, "AMIDrift", c.Created.Add(90*time.Second))
	case "after": // so many that drifted it was made, and has not drifted
		f.Claim(who).DriftReplacement.DriftedInRow, _ = strconv.Atoi(what)
	case "serves": // since so long, in place of the one before
		f.Say(who, cluster.TookOver, "TookOver", since)
	case "rests": // for so long, because its move has failed
		f.Claim(who).RestUntil = f.Now.Add(ago)
	case "expected": // and not shown by the API server yet
		f.Claim(who).Expected = true
	case "recovered": // so long ago from a drift
		f.Say(who, cluster.Drifted, "AMIDrift", since)
		c := f.Claim(who)
		c.Conditions[len(c.Conditions)-1].Status = cluster.False
	case "canary":
		f.Pool.Overrides.Canary = true
	case "changed":
		f.Pool.Generation++
	case "fails":
		f.Pool.RegistrationHealth = cluster.False
	case "said": // by the pool, five minutes ago
		reason, status, _ := strings.Cut(what, " ")
		f.Pool.Status.Conditions = []cluster.Condition{{Type: cluster.DriftProceeds, Reason: reason,
			Status: cluster.ConditionStatus(cmp.Or(status, string(cluster.True))), Since: f.Now.Add(-5 * time.Minute)}}
	case "saying":
		f.S.InFlight[command.SetPool{Pool: "default"}.Key()] = true
	}
}

// rolled tells how many drifted nodes may begin to be replaced now, and what the pool says.
func rolled(f *disrupttest.Fleet) string {
	rollouts := NewRollouts(f.S.Seal(), f.Set)
	r, says := rollouts.rolloutOf(f.Pool), rollouts.DriftCondition(f.Pool)
	out := fmt.Sprintf("%d may begin; %s %s", r.mayBegin, says.Reason, says.Status)
	if about, _, _ := strings.Cut(render.Text(says.Text), ","); about != "" {
		out += " (" + about + ")"
	}
	if !r.wakeAt.IsZero() {
		out += "; look again in " + r.wakeAt.Sub(f.Now).String()
	}
	var over []string
	for c := range rollouts.takenOver() {
		over = append(over, c.Name)
	}
	slices.Sort(over)
	if len(over) > 0 {
		out += "; have taken over: " + strings.Join(over, ", ")
	}
	return out
}

// How many drifted nodes may begin to be replaced, and what their pool says of those that have been.
func TestHowFarAReplacementHasCome(t *testing.T) {
	for _, c := range []struct{ name, cluster, want string }{
		{"two replacements of one pool have drifted, and one is being deleted",
			"small: small: small: medium:; n1 move Drifted; n3 deleted; n1 drifted|n2 made 6m; n2 again 0; " +
				"n3 made 40m; n4 made 6m; n4 again 0; all canary x",
			"0 may begin; ReplacementsDrift False (NodeClaim n2); have taken over: n2, n4"},
		{"one has proven itself, and one has just taken over",
			"medium: medium: small: small: medium:; n3 drifted|n2 made 3m; n2 serves 10m; n4 made 40m; n5 made 2h; " +
				"all canary x",
			"1 may begin; DriftProceeds True; have taken over: n4"},
		{"a machine that has served for long has no node any more",
			"medium: small: medium: medium:; n1 move Drifted; n4 fences x; n2 absent|n2 made 6m; n2 serves 30m; " +
				"n3 replaces n1; all canary x",
			"-1 may begin; CanaryWatched Unknown (the first drifted nodes have gone; " +
				"others follow when all is well for 10m0s)"},
		{"the newest that has drifted tells, with the count of its pool",
			"small: medium: small: medium:; n3 absent|n2 replaces n1; n2 again 0; n3 made 8m; n3 again 3; " +
				"n4 made 3m; n4 again 0",
			"0 may begin; ReplacementsDrift False (NodeClaim n2); look again in 17m0s"},
		{"one that is made after one that had drifted is not up yet",
			"medium: small: small:; n2 joining|n2 made 8m; n2 after 1; n3 made 1m",
			"0 may begin; ReplacementsDrift False (what was created in place of drifted nodes has drifted itself); " +
				"look again in 5m0s"},
		{"the last drifted node is being deleted", "small:1; n1 drifted; n1 deleted|all canary x; all said Wave2",
			"1 may begin; DriftProceeds True"},
		{"a replacement that has drifted counts while it is being deleted",
			"medium: medium:; n2 deleted|n2 made 2m; n2 again 0; all canary x; all saying x",
			"1 may begin; ReplacementsDrift False (NodeClaim n2)"},
		{"the node that was replaced is being deleted and carries nothing",
			"medium: small:; n1 move Drifted; n1 deleted|n2 replaces n1; all canary x",
			"0 may begin; DriftProceeds True; have taken over: n2"},
		{"a replacement is not up in time while another node goes",
			"medium: medium: small:; n2 drifted; n2 move Drifted; n3 joining|n3 made 20m; all canary x",
			"0 may begin; ReplacementsFail False (NodeClaim n3)"},
		{"a node that comes up is no replacement", "medium:; n1 joining|all canary x",
			"1 may begin; DriftProceeds True"},
		{"a drifted node that is being deleted is not being fenced",
			"small: small:; n2 drifted; n2 deleted; n2 fences x|all canary x",
			"1 may begin; DriftProceeds True"},
		{"the machine of the last drifted node is gone",
			"small:; n1 move Drifted; n1 deleted; n1 absent|all canary x",
			"0 may begin; DriftProceeds True"},
		{"a drifted node goes in another move", "small:; n1 drifted; n1 move Underutilized; n1 fences x|all canary x",
			"1 may begin; DriftProceeds True"},
		{"one drifts again while another is watched",
			"small: small: medium: small: small:|n3 made 6m; n4 again 1; n5 made 20m; n5 again 0; all canary x",
			"0 may begin; CanaryWatched Unknown (the first drifted nodes have gone; " +
				"others follow when all is well for 10m0s); have taken over: n3, n5"},
		{"a replacement that has drifted is being fenced", "small: small:; n2 fences x; n2 drifted|n2 made 12m",
			"0 may begin; ReplacementsDrift False (NodeClaim n2)"},
		{"a replacement without drifted nodes is no news", "medium: small: small:|n3 made 20m; all canary x",
			"1 may begin; DriftProceeds True"},
		{"one serves and is not up any more",
			"medium: small: small: small:; n4 joining|n2 replaces n1; n3 made 3m; n4 made 2h; n4 serves 5m; " +
				"all canary x",
			"-1 may begin; CanaryWatched Unknown (the first drifted nodes have gone; " +
				"others follow when all is well for 10m0s); have taken over: n3"},
		{"the pool tells of a wave that is too large", "small:|all canary x; all said Wave99999999 Unknown",
			"0 may begin; CanaryWatched Unknown (the first drifted nodes have gone; " +
				"others follow when all is well for 10m0s); look again in 5m0s"},
		{"the pool tells of the largest wave", "small:|all canary x; all said Wave65536 Unknown",
			"0 may begin; Wave65536Watched Unknown (the first drifted nodes have gone; " +
				"others follow when all is well for 10m0s); look again in 5m0s"},
		{"one that has drifted often, and an older one",
			"small: small: small: small: medium:|n3 replaces n1; n3 again 3; n5 made 5m; n5 again 1",
			"0 may begin; ReplacementsDrift False (NodeClaim n3); look again in 17m0s"},
		{"a replacement that has served long is not ready",
			"medium: small:; n1 drifted; n2 unready|n2 made 20m; n2 serves 30m; all canary x",
			"0 may begin; CanaryWatched Unknown (the first drifted nodes have gone; " +
				"others follow when all is well for 10m0s)"},
		{"a second wave is watched", "small: small: small:|n2 replaces n1; n3 made 1m; all canary x; all said Wave2",
			"1 may begin; Wave2Watched Unknown (the first drifted nodes have gone; " +
				"others follow when all is well for 10m0s); have taken over: n3"},
		{"two replacements are not up, one of them for too long",
			"medium: small: medium: medium:; n4 joining; n3 joining|n3 made 2m; n4 made 12m",
			"1 may begin; ReplacementsFail False (NodeClaim n4); look again in 3m0s"},
		{"pods have yet to leave a node that is being deleted",
			"medium: small:1; n2 move Drifted; n2 deleted|all canary x; all said Wave2Leaves",
			"0 may begin; Wave2Leaves True (pods leave the first drifted nodes; " +
				"others follow when these are gone and all is well)"},
		{"the pool has been changed since",
			"small: medium: small: medium:|n2 made 5m; n4 made 2m; n4 after 2; all changed x",
			"4 may begin; DriftProceeds True"},
		{"an old replacement is not up, and a younger one is",
			"small: small: small: medium: small:; n5 joining|n3 made 12m; n4 made 40m; n5 made 20m",
			"5 may begin; DriftProceeds True"},
		{"the machine of the node that was replaced is gone",
			"medium: small:; n1 move Drifted; n1 deleted; n1 absent|n2 replaces n1; all canary x",
			"0 may begin; DriftProceeds True; have taken over: n2"},
		{"what the pool says is just being written", "small:; n1 drifted|all canary x; all saying x",
			"0 may begin; DriftProceeds True"},
		{"what was made to save money proves nothing",
			"medium: small: medium:; n1 move Underutilized; n3 drifted|n2 replaces n1; all canary x",
			"1 may begin; DriftProceeds True"},
		{"a node that has not drifted rests while replacements fail", "small: small:; n1 drifted|n2 rests 5m; all " +
			"fails x",
			"1 may begin; ReplacementsFail False (at least half of the pool's latest launches did not become nodes; " +
				"no more drifted nodes are replaced until that is mended)"},
		{"a drifted node rests that is being deleted", "small: small:; n1 drifted; n2 drifted; n2 deleted|n2 rests " +
			"5m; all fails x",
			"1 may begin; ReplacementsFail False (at least half of the pool's latest launches did not become nodes; " +
				"no more drifted nodes are replaced until that is mended)"},
		{"a replacement has not been seen yet", "medium: small:; n1 drifted; n2 joining|n2 made 20m; n2 expected x",
			"2 may begin; DriftProceeds True"},
		{"a replacement is older than the drift that goes on", "medium: small: medium:; n1 drifted|n2 made 2h; n2 " +
			"serves 90m; n3 recovered 3h; all canary x",
			"1 may begin; DriftProceeds True"},
	} {
		if got := rolled(rollingFleet(c.cluster)); got != c.want {
			t.Errorf("%s (%s):\n%s, want\n%s", c.name, c.cluster, got, c.want)
		}
	}
}
