package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// mostTries bounds how often the planner is asked in one search for what it fails on, and longestIsolation for how
	// long; leastTries are asked however long they take, so that it always gets on. What there is no time for in one
	// pass is gone on with in the next, for laterIsolation.
	mostTries        = 64
	leastTries       = 6
	longestIsolation = 5 * time.Second
	laterIsolation   = time.Second
	// pairTries of them are kept for those that fail only together with others.
	pairTries = 16
	// undecidedFor is how long those are left out that there was no time to tell apart, unless a pass goes on with them
	// before.
	undecidedFor = time.Minute
)

// isolation is the search for the least that has to be left out so that a step of the planner does not fail. It
// supposes that with more left out the planner fails less.
type isolation struct {
	// asks asks the planner with this left out and nothing else, and reports whether it does not fail.
	asks func(cluster.Quarantine) bool
	// base is left out whatever is found.
	base    cluster.Quarantine
	message string
	now     time.Time
	end     time.Time // zero if only tries are bounded
	tries   int
	// reservedTries is how many tries isolate leaves for those that fail only together with others.
	reservedTries int
}

// newIsolation begins a search that may take so long. Whoever has a clock of their own has the same answer however busy
// the machine is.
func (l *Loop) newIsolation(message string, now time.Time, longest time.Duration) *isolation {
	i := &isolation{message: cut(message), now: now}
	if l.Wait == nil {
		i.end = time.Now().Add(longest)
	}
	return i
}

// outOfTries reports whether there are no tries left, beside those that are kept for later.
func (iso *isolation) outOfTries(kept int) bool {
	return iso.tries >= mostTries-kept || iso.tries >= leastTries && !iso.end.IsZero() && !time.Now().Before(iso.end)
}

// passes reports whether the planner does not fail with this left out as well.
func (iso *isolation) passes(q cluster.Quarantine) bool {
	iso.tries++
	return iso.asks(iso.base.With(q))
}

// isolate finds out which of the candidates have to be left out, while there are tries. passes asks the planner without
// some. It begins with the largest groups: of whom nothing is known to be wrong is let in as early as can be. What is
// let in stays in, so of two that fail only together the one is left out that is looked at later. open are groups that
// there was no time for; each holds one that has to be left out, or may.
func (iso *isolation) isolate(queue []suspectGroup, passes func([]suspect) bool) (causes []suspect,
	open []suspectGroup) {
	for len(queue) > 0 && !iso.outOfTries(iso.reservedTries) {
		g := queue[0]
		queue = queue[1:]
		out := slices.Concat(causes, flatten(queue))
		if len(g.suspects) == 0 || !g.mustFail && passes(out) {
			continue
		}
		if len(g.suspects) == 1 {
			causes = append(causes, g.suspects[0])
			continue
		}
		first, second := g.split()
		if iso.outOfTries(iso.reservedTries) {
			queue = append(queue, first, second)
			break
		}
		if passes(slices.Concat(out, second.suspects)) {
			second.mustFail = true // for the group does, and the first half of it is in now
			queue = append(queue, second)
			continue
		}
		first.mustFail = true
		queue = append(queue, first, second)
	}
	return causes, queue
}

// isolationResult is what an isolation finds: what has to be left out, what is not known yet, and what is let in again.
type isolationResult struct {
	causes    []suspect
	undecided []suspectGroup
	cleared   []suspect
	// pairedWith is whom a class fails together with, if it does not fail alone.
	pairedWith map[string]suspect
}

// findPairs finds out which of the guilty classes fail only together with another that is let in, and with which. Those
// of whose namespace the fewest are guilty come first: the mistakes of one tenant must not hide what another needs to
// know.
func (iso *isolation) findPairs(b *isolationResult, all []suspect) {
	b.pairedWith = make(map[string]suspect)
	in := without(all, b.causes, flatten(b.undecided))
	crowd := make(map[string]int)
	for _, g := range b.causes {
		crowd[g.broadGroup]++
	}
	order := slices.Clone(b.causes)
	slices.SortStableFunc(order, func(a, c suspect) int { return crowd[a.broadGroup] - crowd[c.broadGroup] })
	for _, g := range order {
		if len(in) == 0 || iso.outOfTries(0) {
			return
		}
		only := without(all, []suspect{g})
		if !iso.passes(iso.withClasses(only)) {
			continue // it fails alone
		}
		fine, bad := 0, len(in) // with the first fine it does not fail, with the first bad it does
		for bad-fine > 1 && !iso.outOfTries(0) {
			middle := (fine + bad) / 2
			if iso.passes(iso.withClasses(without(only, in[:middle]))) {
				fine = middle
			} else {
				bad = middle
			}
		}
		if bad-fine == 1 {
			b.pairedWith[g.key] = in[bad-1]
		}
	}
}

// preferUnplaced leaves those out who fail together with a class instead of it, if they get no place anyway. served
// reports whether somebody of a class gets one.
func (iso *isolation) preferUnplaced(b *isolationResult, served func(key string) bool) {
	for i, g := range b.causes {
		with, paired := b.pairedWith[g.key]
		if !paired || served(with.key) || iso.outOfTries(0) {
			continue
		}
		causes := slices.Clone(b.causes)
		causes[i] = with
		if iso.passes(iso.withClasses(slices.Concat(causes, flatten(b.undecided)))) {
			b.causes = causes
			b.pairedWith[with.key] = g
		}
	}
}

// failures is what is to be remembered of what was found.
func (iso *isolation) failures(b *isolationResult) map[string]cluster.Failure {
	out := make(map[string]cluster.Failure)
	for _, c := range b.cleared {
		out[c.key] = cluster.Failure{Message: iso.message, Until: iso.now}
	}
	for _, c := range b.causes {
		f := cluster.Failure{Message: iso.message}
		if with, paired := b.pairedWith[c.key]; paired {
			f.PairedWith, f.Message = with.key, fmt.Sprintf("%s (only together with pods like %s)",
				iso.message, with.name)
		}
		out[c.key] = f
	}
	for i, g := range b.undecided {
		for _, c := range g.suspects {
			out[c.key] = cluster.Failure{Message: iso.message, Group: i + 1, Until: iso.now.Add(undecidedFor)}
		}
	}
	return out
}

// withClasses leaves classes out for a try.
func (iso *isolation) withClasses(of []suspect) cluster.Quarantine {
	return cluster.Quarantine{Classes: iso.asFailures(of)}
}

// withClaims leaves claims and nodes out for a try.
func (iso *isolation) withClaims(of []suspect) cluster.Quarantine {
	return cluster.Quarantine{Claims: iso.asFailures(of)}
}

func (iso *isolation) asFailures(of []suspect) map[string]cluster.Failure {
	out := make(map[string]cluster.Failure, len(of))
	for i := range of {
		out[of[i].key] = cluster.Failure{Message: iso.message, Since: iso.now, Until: iso.now.Add(undecidedFor)}
	}
	return out
}

func (iso *isolation) withParts(parts []cluster.Part) cluster.Quarantine {
	out := make(map[cluster.Part]cluster.Failure, len(parts))
	for _, part := range parts {
		out[part] = cluster.Failure{Message: iso.message}
	}
	return cluster.Quarantine{Parts: out}
}
