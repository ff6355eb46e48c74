package topology

import (
	"github.com/tenon-sh/tenon/internal/cluster"
)

// What one placement takes on of rules between pods. Each class may have rules of its own, and whoever may create pods
// may create classes: the work grows with the square of rules that look at pods of any label.
const (
	// MostWide bounds the rules that name no label which the pods they look at must have.
	MostWide = 128
	// MostRules bounds all rules, MostKeys the topology keys that they are about.
	MostRules = 50_000
	MostKeys  = 512
)

// EachRule visits the rules that a class has, and those that it wishes for if preferences are used.
func EachRule(c *cluster.PodClass, usePreferences bool, each func(*cluster.Rule)) {
	for _, r := range c.Rules {
		each(r)
	}
	for i := range c.Preferences {
		if r := c.Preferences[i].Rule; usePreferences && r != nil {
			each(r)
		}
	}
}

// SelectsByNoLabel reports whether pods of any labels may be what the rule looks at.
func SelectsByNoLabel(r *cluster.Rule) bool {
	for i := range r.Selectors {
		if r.Selectors[i].MatchesNone || anchorLabel(&r.Selectors[i]) >= 0 {
			return false
		}
	}
	return len(r.Selectors) > 0
}

// RuleBudget counts what the classes that were taken on ask for; the same rule of several counts once.
type RuleBudget struct {
	rules, keys    map[string]bool
	wide           int
	usePreferences bool
}

// NewRuleBudget counts from nothing.
func NewRuleBudget(usePreferences bool) *RuleBudget {
	return &RuleBudget{rules: make(map[string]bool), keys: make(map[string]bool), usePreferences: usePreferences}
}

// Admit counts a class and reports whether all is still within bounds. One that is not within bounds is not counted.
func (b *RuleBudget) Admit(c *cluster.PodClass) bool {
	var rules, keys []string
	allDomains := 0
	EachRule(c, b.usePreferences, func(r *cluster.Rule) {
		if b.rules[r.Key] {
			return
		}
		if rules = append(rules, r.Key); SelectsByNoLabel(r) {
			allDomains++
		}
		if !b.keys[r.TopologyKey] {
			keys = append(keys, r.TopologyKey)
		}
	})
	if b.wide+allDomains > MostWide || len(b.rules)+len(rules) > MostRules || len(b.keys)+len(keys) > MostKeys {
		return false
	}
	b.wide += allDomains
	for _, key := range rules {
		b.rules[key] = true
	}
	for _, key := range keys {
		b.keys[key] = true
	}
	return true
}
