package purchase

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/topology"
)

// avoidTaintWeight is the weight of a taint that pods should rather avoid, beside wishes of 1 to 100.
const avoidTaintWeight = 50

// podPreferences is what pods would like of a node.
type podPreferences struct {
	number           int
	preferences      []cluster.Preference
	preferredDomains require.Set
	tolerations      []cluster.Toleration
}

// preferencesOf finds what a share's pods would like; nil if they don't care.
func (ib *itemBuilder) preferencesOf(p *domainShare) *podPreferences {
	if !ib.usePreferences {
		return nil
	}
	class := p.group.members[0].podSet.Class
	var text strings.Builder
	for i := range class.Preferences {
		if w := &class.Preferences[i]; w.Rule == nil {
			text.WriteString(strconv.Itoa(int(w.Weight)))
			text.WriteString(w.Term.String())
			text.WriteByte('|')
		} else if w.Rule.TopologyKey != cluster.HostnameLabel {
			text.WriteString(strconv.Itoa(int(w.Weight)))
			text.WriteString(w.Rule.TopologyKey)
			text.WriteByte('|')
		}
	}
	if len(p.preferredDomains) > 0 {
		text.WriteString(p.preferredDomains.String())
	}
	if ib.avoidTaints {
		text.WriteString(topology.TolerationsText(class))
	} else if text.Len() == 0 {
		return nil
	}
	l := ib.preferences[text.String()]
	if l == nil {
		l = &podPreferences{number: len(ib.preferenceList), preferences: class.Preferences,
			preferredDomains: p.preferredDomains}
		if ib.avoidTaints {
			l.tolerations = class.Tolerations
		}
		ib.preferences[text.String()] = l
		ib.preferenceList = append(ib.preferenceList, l)
	}
	return l
}

// preferenceScores is what some pods would like. Offerings that no wish tells apart are of one sort.
type preferenceScores struct {
	list        []*podPreferences
	keys        []string // labels by which wishes tell nodes apart
	avoidTaints bool
	// sortNumbers numbers the sorts of offerings, sortExamples has an offering of each, sortsByMarket says which sort
	// each offering of a market is, scores how far each sort meets each like.
	sortNumbers   map[string]int32
	sortExamples  []offering
	sortsByMarket map[*market.Pool][]int32
	scores        [][]float32
}

func newPreferenceScores(list []*podPreferences, avoid bool) *preferenceScores {
	t := &preferenceScores{list: list, avoidTaints: avoid, sortNumbers: make(map[string]int32),
		sortsByMarket: make(map[*market.Pool][]int32)}
	keys := make(map[string]bool)
	for _, l := range list {
		for i := range l.preferences {
			if w := &l.preferences[i]; w.Rule != nil {
				keys[w.Rule.TopologyKey] = true
			} else {
				for _, e := range w.Term {
					keys[e.Key] = true
				}
			}
		}
	}
	t.keys = slices.Sorted(maps.Keys(keys))
	t.scores = make([][]float32, len(list))
	return t
}

// keysOf are the keys by which wishes tell offerings of the market apart: none has a label that the catalog
// does not know.
func (t *preferenceScores) keysOf(pm *market.Pool) []string {
	var out []string
	index := pm.Spec.Catalog.Index()
	for _, key := range t.keys {
		if index.Knows(key) {
			out = append(out, key)
		}
	}
	return out
}

// sortsOf says which sort each offering of the market is.
func (t *preferenceScores) sortsOf(pm *market.Pool) []int32 {
	if of, known := t.sortsByMarket[pm]; known {
		return of
	}
	of, keys := make([]int32, len(pm.Room)), t.keysOf(pm)
	var text []byte
	for i := range pm.Spec.Catalog.Offerings {
		text = strconv.AppendInt(text[:0], int64(pm.Number), 10)
		for _, key := range keys {
			value, present := pm.Spec.Catalog.Offerings[i].Label(key)
			text = strconv.AppendBool(append(append(text, 0), value...), present)
		}
		sort, known := t.sortNumbers[string(text)]
		if !known {
			sort = int32(len(t.sortExamples))
			t.sortNumbers[string(text)] = sort
			t.sortExamples = append(t.sortExamples, offering{pm, i})
		}
		of[i] = sort
	}
	t.sortsByMarket[pm] = of
	return of
}

// scoreOf says how far a sort meets a like.
func (t *preferenceScores) scoreOf(preference int, sort int32) float32 {
	for len(t.scores[preference]) < len(t.sortExamples) {
		r := t.sortExamples[len(t.scores[preference])]
		t.scores[preference] = append(t.scores[preference], t.list[preference].score(r.market, r.index, t.avoidTaints))
	}
	return t.scores[preference][sort]
}

// same reports whether no wish tells two offerings of a market apart.
func (t *preferenceScores) same(pm *market.Pool, i, j int) bool {
	if len(t.list) == 0 {
		return true
	}
	of := t.sortsOf(pm)
	return of[i] == of[j]
}

// scoresOf says, for each like, how far each offering meets it.
func (t *preferenceScores) scoresOf(offerings []offering) [][]float32 {
	out := make([][]float32, len(t.list))
	for _, r := range offerings {
		if len(t.list) > 0 {
			t.sortsOf(r.market)
		}
	}
	for n := range t.list {
		out[n] = make([]float32, len(offerings))
		for i, r := range offerings {
			out[n][i] = t.scoreOf(n, t.sortsByMarket[r.market][r.index])
		}
	}
	return out
}

// likedSorts finds, for a content that was bought as an offering, the sorts that meet its wishes no less.
func (t *preferenceScores) likedSorts(pm *market.Pool, own int, content []preferenceUse) []bool {
	if len(content) == 0 {
		return nil
	}
	of := t.sortsOf(pm)
	score := func(sort int32) (sum float32) {
		for _, w := range content {
			sum += float32(w.count) * t.scoreOf(w.preference, sort)
		}
		return sum
	}
	out, least := make([]bool, len(t.sortExamples)), score(of[own])
	for sort := range out {
		out[sort] = t.sortExamples[sort].market == pm && score(int32(sort)) >= least-1e-4
	}
	return out
}

// preferenceUse is how many pods have a like.
type preferenceUse struct{ preference, count int }

// score says how far an offering meets the wishes: 0 not at all, 1 completely.
func (l *podPreferences) score(pm *market.Pool, row int, avoid bool) float32 {
	label := func(key string) (string, bool) {
		if value, ok := pm.FixedLabels.Get(key); ok {
			return value, true
		}
		return pm.Spec.Catalog.Offerings[row].Label(key)
	}
	met, all := int32(0), int32(0)
	for i := range l.preferences {
		w := &l.preferences[i]
		if w.Rule != nil && w.Rule.TopologyKey == cluster.HostnameLabel {
			continue
		}
		all += w.Weight
		ok := false
		if w.Rule == nil {
			_, ok = w.Term.FirstMiss(label)
		} else if near, chosen := l.preferredDomains.Get(w.Rule.TopologyKey); chosen {
			value, present := label(w.Rule.TopologyKey)
			ok = near.Matches(value, present)
		}
		if ok {
			met += w.Weight
		}
	}
	if avoid {
		all += avoidTaintWeight
		if !prefersElsewhere(l.tolerations, pm.Spec.Template.Taints) {
			met += avoidTaintWeight
		}
	}
	if all == 0 {
		return 0
	}
	return float32(met) / float32(all)
}

// prefersElsewhere reports whether a taint asks pods with the tolerations to go elsewhere if they can.
func prefersElsewhere(tolerations []cluster.Toleration, taints []cluster.Taint) bool {
	for _, t := range taints {
		if t.Effect != cluster.PreferNoSchedule {
			continue
		}
		ok := false
		for _, tol := range tolerations {
			ok = ok || tol.Tolerates(t)
		}
		if !ok {
			return true
		}
	}
	return false
}
