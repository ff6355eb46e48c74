package main

import (
	"slices"

	"github.com/tenon-sh/tenon/bench/internal/cluster"
	"github.com/tenon-sh/tenon/bench/internal/report"
)

// The usual sizes: a rush of everyday size from beginning to end, and a large cluster that stays.
const (
	everyday = 1000
	large    = 20000
)

// session is what a contestant does on one lab: pods come, and then what its kinds of scenario say. Where the cluster
// is furnished, nodes and pods are there already, and there is one kind with a goal: the pods that are left, or the
// nodes that change.
type session struct {
	pods  int
	goal  int
	kinds []string
	base  bool
}

// sessions are those of one size, or the usual ones if it is zero.
func sessions(pods int) []session {
	furnished := func(pods int) []session {
		return []session{
			{pods: pods, goal: max(1, pods*7/10), kinds: []string{report.Settle}},
			{pods: pods, goal: max(1, pods/4), kinds: []string{report.Settle}},
			{pods: pods, goal: max(1, pods/2), kinds: []string{report.Drift}},
		}
	}
	if pods != 0 {
		return append([]session{{pods: pods, kinds: report.Kinds(), base: true}}, furnished(pods)...)
	}
	return append([]session{
		{pods: everyday, kinds: []string{report.Up, report.Down}, base: true},
		{pods: large, kinds: []string{report.Up, report.RSS, report.Idle}, base: true},
	}, furnished(everyday)...)
}

// plan keeps of the sessions what was asked for.
func plan(o options) []session {
	var out []session
	for _, s := range sessions(o.pods) {
		s.kinds = slices.DeleteFunc(slices.Clone(s.kinds), func(kind string) bool {
			names := o.names()
			return len(names) > 0 && !slices.Contains(names, kind) && !slices.Contains(names, s.scenario(kind).Name())
		})
		s.base = !o.skipBase && s.has(report.Up)
		if len(s.kinds) > 0 {
			out = append(out, s)
		}
	}
	return out
}

func (s session) has(kind string) bool { return slices.Contains(s.kinds, kind) }

// needs tells whether a contestant takes part: the base only where pods come.
func (s session) needs(contestant string) bool { return contestant != report.Base || s.base }

// name tells the session from others, for people and for file names.
func (s session) name() string { return s.scenario(s.kinds[0]).Name() }

// pool is the one that the session's nodes come from.
func (s session) pool() string {
	switch {
	case s.has(report.Settle):
		return cluster.PoolMixed
	case s.has(report.Drift):
		return cluster.PoolRolling
	}
	return cluster.PoolOneType
}

// scenario is the row of one kind.
func (s session) scenario(kind string) *report.Scenario {
	return &report.Scenario{Kind: kind, Pods: s.pods, Goal: s.goal}
}

// scenarios are the rows that the session fills.
func (s session) scenarios() []*report.Scenario {
	var out []*report.Scenario
	for _, kind := range s.kinds {
		out = append(out, s.scenario(kind))
	}
	return out
}
