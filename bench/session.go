package main

import (
	"slices"

	"github.com/tenon-sh/tenon/bench/internal/report"
)

// The usual sizes: a rush of everyday size from beginning to end, and a large cluster that stays.
const (
	everyday = 1000
	large    = 20000
)

// session is what a contestant does on one lab: pods come, and then what its kinds of scenario say.
type session struct {
	pods  int
	kinds []string
	base  bool
}

// sessions are those of one size, or the usual ones if it is zero.
func sessions(pods int) []session {
	if pods != 0 {
		return []session{{pods: pods, kinds: report.Kinds(), base: true}}
	}
	return []session{
		{pods: everyday, kinds: []string{report.Up, report.Down}, base: true},
		{pods: large, kinds: []string{report.Up, report.RSS, report.Idle}, base: true},
	}
}

// plan keeps of the sessions what was asked for.
func plan(o options) []session {
	var out []session
	for _, s := range sessions(o.pods) {
		s.kinds = slices.DeleteFunc(slices.Clone(s.kinds), func(kind string) bool {
			names := o.names()
			return len(names) > 0 && !slices.Contains(names, kind) && !slices.Contains(names, report.Name(kind, s.pods))
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

// scenarios are the rows that the session fills.
func (s session) scenarios() []*report.Scenario {
	var out []*report.Scenario
	for _, kind := range s.kinds {
		out = append(out, &report.Scenario{Kind: kind, Pods: s.pods})
	}
	return out
}
