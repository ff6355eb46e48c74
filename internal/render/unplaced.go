package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
	"github.com/tenon-sh/tenon/internal/topology"
)

// mostText bounds how long the sentence about the pools gets before the rest of them is only counted: an event holds
// 1,024 bytes.
const mostText = 900

// Unplaced is why a pod has no place, in a sentence a person can act on. The pool that came closest to giving the pod a
// node comes first; pools that can't be used at all are counted.
func Unplaced(u *schedule.Unplaced) string {
	if u.Failed != nil {
		return describeFailure(u.Failed)
	}
	if len(u.Unsupported) > 0 {
		return "the pod asks for what can't be planned for: " + strings.Join(u.Unsupported, ", ")
	}
	if u.Held.Tries != nil {
		return Hold(u.Held)
	}
	if u.Deferred {
		return fmt.Sprintf("the pod waits for its turn: the pods that look for a place have more rules about other "+
			"pods than one plan takes on "+
			"(%d that name no label of these pods, %d in all, about %d topology keys); let pods share rules, or name "+
			"a label with its values in each selector",
			topology.MostWide, topology.MostRules, topology.MostKeys)
	}
	if u.TakenVolume != "" {
		return fmt.Sprintf("%s may be used by one pod at a time, and another pod uses it or is about to", u.TakenVolume)
	}
	if len(u.Pools) == 0 && u.OtherPools > 0 {
		return fmt.Sprintf("no NodePool of this controller is there to make a node for the pod; create one, unless a "+
			"node comes from %s",
			countNoun(u.OtherPools, "NodePool that belongs to another controller", "NodePools that belong to other "+
				"controllers"))
	}
	if len(u.Pools) == 0 {
		return "no NodePool is there to make a node for the pod; create one"
	}
	text := describePools(u)
	if u.OtherPools > 0 {
		text += "; " + countNoun(u.OtherPools, "more NodePool belongs to another controller", "more NodePools belong "+
			"to other controllers")
	}
	return text
}

// describePools says why no pool could give the pod a node.
func describePools(u *schedule.Unplaced) string {
	var usable []*schedule.PoolMiss
	for i := range u.Pools {
		if u.Pools[i].NotUsable.IsZero() {
			usable = append(usable, &u.Pools[i])
		}
	}
	if len(usable) == 0 {
		return describeUnusable(u.Pools)
	}
	slices.SortStableFunc(usable, func(a, b *schedule.PoolMiss) int { return cmp.Compare(progress(b), progress(a)) })
	text := describePool(u, usable[0])
	for i, m := range usable[1:] {
		next := "; " + describePool(u, m)
		if len(text)+len(next) > mostText {
			text += "; " + countNoun(len(usable)-1-i, "other NodePool is", "other NodePools are") + " farther from it"
			break
		}
		text += next
	}
	if broken := len(u.Pools) - len(usable); broken > 0 {
		text += "; " + countNoun(broken, "other NodePool", "other NodePools") + " can't be used now, as the " +
			"conditions there say"
	}
	return text
}

// describeFailure says that the planner failed on pods like this one, or that it may have been on such pods.
func describeFailure(f *cluster.Failure) string {
	until := f.Until.UTC().Format(time.RFC3339)
	if f.Group > 0 {
		return fmt.Sprintf("Tenon's planner failed on some pods, which is a mistake in Tenon: %s. "+
			"It is not known yet whether pods like this one cause it. "+
			"Until that is known, and at most until %s, they get no node", f.Message, until)
	}
	return fmt.Sprintf("Tenon's planner failed on pods like this one, which is a mistake in Tenon: %s. "+
		"Until %s they get no node; all other pods do. Changing what the pod asks for may help. "+
		"Please report the mistake, with the snapshot file that the controller's log names", f.Message, until)
}

// describeUnusable is about pools of which none can be used.
func describeUnusable(pools []schedule.PoolMiss) string {
	first := fmt.Sprintf("NodePool %q: %s", pools[0].Pool, Text(pools[0].NotUsable))
	if len(pools) == 1 {
		return first
	}
	return fmt.Sprintf("none of the %d NodePools can be used now, as their conditions say; %s", len(pools), first)
}

func countNoun(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// progress is how far the last of the pool's types came.
func progress(m *schedule.PoolMiss) int {
	if m.MinValues != "" {
		return 11
	}
	for i, n := range []int{m.ByTopology, m.ByLimit, m.ByPort, m.ByOffering, m.ByResources, m.ByRequirement} {
		if n > 0 {
			return 10 - i
		}
	}
	switch {
	case m.Taint != nil:
		return 1
	case m.Label != "":
		return 2
	}
	return 3
}

// describePool says why one pool gives the pod no node.
func describePool(u *schedule.Unplaced, m *schedule.PoolMiss) string {
	at := fmt.Sprintf("NodePool %q: ", m.Pool)
	place := u.VolumePlaceOf(m)
	switch {
	case m.Taint != nil:
		return at + "the pod does not tolerate taint " + m.Taint.String()
	case place != nil && (m.Label != "" || m.ByRequirement == m.Types):
		return at + describeVolumePlace(place, m.Has)
	case m.Label != "" && m.Wanted.IsEmpty():
		return at + fmt.Sprintf("what the pod asks of label %s contradicts itself: no value is left", m.Label)
	case m.Label != "" && len(m.Has) > 0:
		return at + fmt.Sprintf("the pod asks for label %s %s; this pool has %s", m.Label, describeWanted(m.Wanted),
			listValues(m.Has))
	case m.Label != "" && m.Similar != "":
		return at + fmt.Sprintf("the pod asks for label %s, which the pool neither sets nor allows; did you mean %s?",
			m.Label, m.Similar)
	case m.Label != "":
		return at + fmt.Sprintf("the pod asks for label %s %s, which the pool neither sets nor allows",
			m.Label, describeWanted(m.Wanted))
	case m.Types == 0:
		return at + "its requirements leave no instance type"
	}
	return at + describeCounts(m)
}

// describeVolumePlace says that a volume is where the pool has no nodes.
func describeVolumePlace(place *cluster.VolumePlace, has []string) string {
	where := "where " + place.Key + " is " + listValues(place.Values)
	if place.Key == cluster.ZoneLabel {
		where = "in " + listValues(place.Values)
	}
	if len(has) == 0 {
		return fmt.Sprintf("volume %s is %s, and this pool is not", place.Volume, where)
	}
	return fmt.Sprintf("volume %s is %s; this pool has %s", place.Volume, where, listValues(has))
}

// listedValues is how many values a sentence names.
const listedValues = 4

// listValues names some values; zones and the like that follow one another become a range (us-west-2a–d).
func listValues(values []string) string {
	if !slices.IsSorted(values) {
		values = slices.Sorted(slices.Values(values))
	}
	if isRange(values) {
		first, last := values[0], values[len(values)-1]
		return first + "–" + last[len(last)-1:]
	}
	if more := len(values) - listedValues; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(values[:listedValues], ", "), more)
	}
	return strings.Join(values, ", ")
}

// isRange reports whether sorted values, more than two of them, differ in their last letter only and follow one
// another. Numbers don't count: v10–2 could be anything.
func isRange(values []string) bool {
	if len(values) <= 2 || len(values) > 26 {
		return false
	}
	first := values[0]
	stem := first[:max(0, len(first)-1)]
	if stem == "" {
		return false
	}
	for i, v := range values {
		if len(v) != len(first) || !strings.HasPrefix(v, stem) {
			return false
		}
		if end := v[len(stem)]; end < 'a' || end > 'z' || int(end) != int(first[len(stem)])+i {
			return false
		}
	}
	return true
}

// mostWanted bounds how long what a pod asks of a label gets in a sentence.
const mostWanted = 200

// describeWanted says what is asked of a label; of many values it names some.
func describeWanted(v require.Values) string {
	terms := v.Terms()
	if len(terms) == 0 {
		return v.String() // nothing, or anything
	}
	var parts []string
	for _, term := range terms {
		switch n := len(term.Values); {
		case n == 0:
			parts = append(parts, string(term.Op))
		case n > listedValues:
			parts = append(parts, fmt.Sprintf("%s [%s]", term.Op, listValues(term.Values)))
		default:
			parts = append(parts, fmt.Sprintf("%s [%s]", term.Op, strings.Join(term.Values, ", ")))
		}
	}
	return clip(strings.Join(parts, " and "), mostWanted)
}

// clip cuts a text after so many bytes, or before the letter that they would cut in two.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// exclusion is what ruled out some of a pool's types. none is said of all of them after "none of the 3 instance types";
// if it is empty, one is said after "each of the 3 instance types". one is said of a single type, some of several.
type exclusion struct {
	types           int
	none, one, some string
}

// exclusions lists what ruled out types, in the order in which they are asked.
func exclusions(m *schedule.PoolMiss) []exclusion {
	size := fmt.Sprintf(" (%s: the pod needs %s, the largest of them leaves %s for pods)", m.Resource, m.Need, m.Best)
	small := fmt.Sprintf(" (%s: the pod needs %s, and it leaves %s for pods)", m.Resource, m.Need, m.Best)
	if m.Crowded {
		small = fmt.Sprintf(" (DaemonSets alone take more %s than it has)", m.Resource)
		size = fmt.Sprintf(" (DaemonSets alone take more %s than the largest of them has)", m.Resource)
	}
	port, limit := " a daemon on a host port that the pod needs", "would exceed the pool's limit of "+m.Limit
	asked := "the pod's " + m.Key
	if m.Key == "" {
		asked = "what the pod asks of a node's labels"
	}
	if !m.Wanted.IsEmpty() {
		asked += fmt.Sprintf(" %s (this pool has %s)", describeWanted(m.Wanted), cmp.Or(listValues(m.Has), "none"))
	}
	out := []exclusion{
		{m.ByRequirement, "matches " + asked, "does not match " + asked, "don't match " + asked},
		{m.ByResources, "is large enough" + size, "is too small" + small, "are too small" + size},
		{m.ByOffering, "has capacity right now" + cloudAdvice(m), "has no capacity right now" + cloudAdvice(m),
			"have no capacity right now" + cloudAdvice(m)},
		{m.ByPort, "", "has" + port, "have" + port},
		{m.ByLimit, "", limit, limit},
	}
	if m.ByTopology > 0 {
		ruled := describeRule(m)
		one := ruled
		if rest, plural := strings.CutPrefix(ruled, "have "); plural {
			one = "has " + rest
		}
		out = append(out, exclusion{m.ByTopology, "", one, ruled})
	}
	return slices.DeleteFunc(out, func(f exclusion) bool { return f.types == 0 })
}

// describeAll says what happened to all types of the pool.
func (f *exclusion) describeAll() string {
	switch {
	case f.types == 1:
		return "its only instance type " + f.one
	case f.none != "":
		return fmt.Sprintf("none of the %d instance types %s", f.types, f.none)
	}
	return fmt.Sprintf("each of the %d instance types %s", f.types, f.one)
}

// describeCounts says how many of the pool's types fell to what.
func describeCounts(m *schedule.PoolMiss) string {
	falls := exclusions(m)
	few := ""
	if m.MinValues != "" {
		few = fmt.Sprintf("minValues of %s can't be met", m.MinValues)
	}
	switch {
	case len(falls) == 0 && few != "":
		return few + " by " + countNoun(m.Types, "instance type", "instance types")
	case len(falls) == 0:
		return "no instance type is left"
	case len(falls) == 1 && falls[0].types == m.Types:
		return falls[0].describeAll()
	}
	var parts []string
	for i := range falls {
		text := falls[i].some
		if falls[i].types == 1 {
			text = falls[i].one
		}
		parts = append(parts, fmt.Sprintf("%d %s", falls[i].types, text))
	}
	if few != "" {
		parts = append(parts, few)
	}
	return fmt.Sprintf("of %d instance types ", m.Types) + strings.Join(parts, ", ")
}

// mostRefusals is how many reasons of the cloud a sentence repeats.
const mostRefusals = 2

// cloudAdvice is what people could do about what the cloud refuses, if anything.
func cloudAdvice(m *schedule.PoolMiss) string {
	if len(m.Advice) == 0 {
		return ""
	}
	text := strings.Join(m.Advice[:min(len(m.Advice), mostRefusals)], "; ")
	if more := len(m.Advice) - mostRefusals; more > 0 {
		text += fmt.Sprintf("; and %d other reasons", more)
	}
	return " (" + text + ")"
}

// describeRule says what a rule between pods makes of the nodes that could be had.
func describeRule(m *schedule.PoolMiss) string {
	r := m.Rule
	where := "in a " + r.TopologyKey
	if r.TopologyKey == cluster.HostnameLabel {
		where = "on a node"
	}
	switch {
	case len(r.Selectors) == 0:
		return "would be in another zone than the pods with which the pod shares a volume"
	case m.Waits:
		return fmt.Sprintf("have to wait: pods that the rule about %s looks at are on a node that is being launched",
			r.TopologyKey)
	case m.Unlabelled && !m.Inverse:
		return fmt.Sprintf("have no label %s, which the pod's rule is about", r.TopologyKey)
	case m.Inverse && r.Kind == cluster.AntiAffinity:
		return fmt.Sprintf("would be %s where another pod's anti-affinity keeps this one away", where)
	case m.Inverse:
		return fmt.Sprintf("would upset another pod's rule about %s", r.TopologyKey)
	case r.Kind == cluster.Spread:
		return fmt.Sprintf("would break the pod's spread over %s (maxSkew %d)", r.TopologyKey, r.MaxSkew)
	case r.Kind == cluster.Affinity:
		return fmt.Sprintf("would be %s without a pod that its affinity asks for", where)
	}
	return fmt.Sprintf("would be %s with a pod that its anti-affinity avoids", where)
}
