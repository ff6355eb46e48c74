package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// mostTries bounds how often the planner is asked in one search for what it fails on, and longestTrial for how long;
	// leastTries are asked however long they take, so that it always gets on. What there is no time for in one pass is
	// gone on with in the next, for laterTrial.
	mostTries    = 64
	leastTries   = 6
	longestTrial = 5 * time.Second
	laterTrial   = time.Second
	// pairTries of them are kept for those that fail only together with others.
	pairTries = 16
	// brief is how long those are left out that there was no time to tell apart, unless a pass goes on with them before.
	brief = time.Minute
)

// trial is the search for the least that has to be left out so that a step of the planner does not fail. It supposes
// that with more left out the planner fails less.
type trial struct {
	// ask asks the planner with this left out and nothing else, and reports whether it does not fail.
	ask func(cluster.Quarantine) bool
	// base is left out whatever is found.
	base    cluster.Quarantine
	message string
	now     time.Time
	end     time.Time // zero if only tries are bounded
	tries   int
	// kept is how many tries isolate leaves for those that fail only together with others.
	kept int
}

// newTrial begins a search that may take so long. Whoever has a clock of their own has the same answer however busy the
// machine is.
func (l *Loop) newTrial(message string, now time.Time, longest time.Duration) *trial {
	t := &trial{message: cut(message), now: now}
	if l.Wait == nil {
		t.end = time.Now().Add(longest)
	}
	return t
}

// spent reports whether there are no tries left, beside those that are kept for later.
func (t *trial) spent(kept int) bool {
	return t.tries >= mostTries-kept || t.tries >= leastTries && !t.end.IsZero() && !time.Now().Before(t.end)
}

// passes reports whether the planner does not fail with this left out as well.
func (t *trial) passes(q cluster.Quarantine) bool {
	t.tries++
	return t.ask(t.base.And(q))
}

// isolate finds out which of the candidates have to be left out, while there are tries. passes asks the planner without
// some. It begins with the largest groups: of whom nothing is known to be wrong is let in as early as can be. What is
// let in stays in, so of two that fail only together the one is left out that is looked at later. open are groups that
// there was no time for; each holds one that has to be left out, or may.
func (t *trial) isolate(queue []group, passes func([]candidate) bool) (guilty []candidate, open []group) {
	for len(queue) > 0 && !t.spent(t.kept) {
		g := queue[0]
		queue = queue[1:]
		out := slices.Concat(guilty, flat(queue))
		if len(g.of) == 0 || !g.fails && passes(out) {
			continue
		}
		if len(g.of) == 1 {
			guilty = append(guilty, g.of[0])
			continue
		}
		first, second := g.split()
		if t.spent(t.kept) {
			queue = append(queue, first, second)
			break
		}
		if passes(slices.Concat(out, second.of)) {
			second.fails = true // for the group does, and the first half of it is in now
			queue = append(queue, second)
			continue
		}
		first.fails = true
		queue = append(queue, first, second)
	}
	return guilty, queue
}

// finding of a trial: what has to be left out, what is not known yet, and what is let in again.
type blamed struct {
	guilty []candidate
	open   []group
	freed  []candidate
	// with is whom a class fails together with, if it does not fail alone.
	with map[string]candidate
}

// pair finds out which of the guilty classes fail only together with another that is let in, and with which. Those of
// whose namespace the fewest are guilty come first: the mistakes of one tenant must not hide what another needs to
// know.
func (t *trial) pair(b *blamed, all []candidate) {
	b.with = make(map[string]candidate)
	in := without(all, b.guilty, flat(b.open))
	crowd := make(map[string]int)
	for _, g := range b.guilty {
		crowd[g.space]++
	}
	order := slices.Clone(b.guilty)
	slices.SortStableFunc(order, func(a, c candidate) int { return crowd[a.space] - crowd[c.space] })
	for _, g := range order {
		if len(in) == 0 || t.spent(0) {
			return
		}
		only := without(all, []candidate{g})
		if !t.passes(t.classes(only)) {
			continue // it fails alone
		}
		fine, bad := 0, len(in) // with the first fine it does not fail, with the first bad it does
		for bad-fine > 1 && !t.spent(0) {
			middle := (fine + bad) / 2
			if t.passes(t.classes(without(only, in[:middle]))) {
				fine = middle
			} else {
				bad = middle
			}
		}
		if bad-fine == 1 {
			b.with[g.key] = in[bad-1]
		}
	}
}

// swap leaves those out who fail together with a class instead of it, if they get no place anyway. served reports
// whether somebody of a class gets one.
func (t *trial) swap(b *blamed, served func(key string) bool) {
	for i, g := range b.guilty {
		with, paired := b.with[g.key]
		if !paired || served(with.key) || t.spent(0) {
			continue
		}
		guilty := slices.Clone(b.guilty)
		guilty[i] = with
		if t.passes(t.classes(slices.Concat(guilty, flat(b.open)))) {
			b.guilty = guilty
			b.with[with.key] = g
		}
	}
}

// failures is what is to be remembered of what was found.
func (t *trial) failures(b *blamed) map[string]cluster.Failure {
	out := make(map[string]cluster.Failure)
	for _, c := range b.freed {
		out[c.key] = cluster.Failure{Message: t.message, Until: t.now}
	}
	for _, c := range b.guilty {
		f := cluster.Failure{Message: t.message}
		if with, paired := b.with[c.key]; paired {
			f.With, f.Message = with.key, fmt.Sprintf("%s (only together with pods like %s)", t.message, with.name)
		}
		out[c.key] = f
	}
	for i, g := range b.open {
		for _, c := range g.of {
			out[c.key] = cluster.Failure{Message: t.message, Group: i + 1, Until: t.now.Add(brief)}
		}
	}
	return out
}

// classes leaves classes out for a try.
func (t *trial) classes(of []candidate) cluster.Quarantine {
	return cluster.Quarantine{Classes: t.tried(of)}
}

// claims leaves claims and nodes out for a try.
func (t *trial) claims(of []candidate) cluster.Quarantine {
	return cluster.Quarantine{Claims: t.tried(of)}
}

func (t *trial) tried(of []candidate) map[string]cluster.Failure {
	out := make(map[string]cluster.Failure, len(of))
	for i := range of {
		out[of[i].key] = cluster.Failure{Message: t.message, Since: t.now, Until: t.now.Add(brief)}
	}
	return out
}

func (t *trial) parts(parts []cluster.Part) cluster.Quarantine {
	out := make(map[cluster.Part]cluster.Failure, len(parts))
	for _, part := range parts {
		out[part] = cluster.Failure{Message: t.message}
	}
	return cluster.Quarantine{Parts: out}
}
