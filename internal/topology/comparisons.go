package topology

import (
	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// fewEnough is up to how many different rules the pods that may move are taken on without a closer look.
	fewEnough = 1_000
	// maxComparisons bounds how often a rule of pods that may move is compared with the labels of pods.
	maxComparisons = 2_000_000
)

// ComparisonBudget counts besides how often the rules are compared with the labels of pods.
type ComparisonBudget struct {
	*RuleBudget
	s           *cluster.Snapshot
	known       map[*cluster.PodClass]bool
	comparisons int
	labelSets   int
	byLabel     map[cluster.Label]int
}

// NewComparisonBudget counts from nothing.
func NewComparisonBudget(s *cluster.Snapshot, usePreferences bool) *ComparisonBudget {
	return &ComparisonBudget{RuleBudget: NewRuleBudget(usePreferences), s: s, known: make(map[*cluster.PodClass]bool)}
}

// Admit reports whether the class is within bounds, together with those that were before it.
func (b *ComparisonBudget) Admit(c *cluster.PodClass) bool {
	within, asked := b.known[c]
	if asked {
		return within
	}
	looks := 0
	EachRule(c, b.usePreferences, func(r *cluster.Rule) {
		if !b.rules[r.Key] {
			looks += b.comparisonsOf(r)
		}
	})
	within = b.comparisons+looks <= maxComparisons && b.RuleBudget.Admit(c)
	if within {
		b.comparisons += looks
	}
	b.known[c] = within
	return within
}

// comparisonsOf is with how many sets of labels a rule is compared. As long as there are few rules it is not counted.
func (b *ComparisonBudget) comparisonsOf(r *cluster.Rule) int {
	if len(b.rules) < fewEnough {
		return 0
	}
	if b.byLabel == nil {
		b.countLabels()
	}
	least := b.labelSets
	for i := range r.Selectors {
		at := anchorLabel(&r.Selectors[i])
		if at < 0 {
			continue
		}
		sum := 0
		values, _ := r.Selectors[i].Labels[at].Values.Listed()
		for _, value := range values {
			sum += b.byLabel[cluster.Label{Key: r.Selectors[i].Labels[at].Key, Value: value}]
		}
		least = min(least, sum)
	}
	return least
}

// countLabels counts the sets of labels that pods have, by each label.
func (b *ComparisonBudget) countLabels() {
	b.byLabel = make(map[cluster.Label]int)
	seen := make(map[*cluster.Label]bool)
	for _, p := range b.s.Pods {
		if len(p.Labels) == 0 || seen[&p.Labels[0]] {
			continue
		}
		seen[&p.Labels[0]] = true
		b.labelSets++
		for _, label := range p.Labels {
			b.byLabel[label]++
		}
	}
}
