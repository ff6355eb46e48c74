package loop

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// suspect is something that the planner may fail on: a class of pods, a claim or a command.
type suspect struct {
	key string
	// broadGroup is what it shares with most others: the namespaces of a class, the pool of a claim. narrowGroup is
	// what it shares with fewer. Suspects are told apart by broad group first, so that one tenant's mistakes hold up
	// nobody else for long.
	broadGroup, narrowGroup string
	// name is for people.
	name  string
	since time.Time
}

// suspectGroup is suspects that are told apart together. They are in order: those of a broad group stand beside each
// other, and there those of an owner.
type suspectGroup struct {
	suspects []suspect
	// mustFail says that the planner is known to fail on some of them.
	mustFail bool
}

// split makes two groups of one that has more than one candidate.
func (g suspectGroup) split() (suspectGroup, suspectGroup) {
	for _, part := range []func(c *suspect) string{
		func(c *suspect) string { return c.broadGroup },
		func(c *suspect) string { return c.narrowGroup },
		func(c *suspect) string { return c.key },
	} {
		var starts []int
		for i := range g.suspects {
			if i == 0 || part(&g.suspects[i]) != part(&g.suspects[i-1]) {
				starts = append(starts, i)
			}
		}
		if len(starts) > 1 {
			middle := starts[(len(starts)+1)/2]
			return suspectGroup{suspects: g.suspects[:middle]}, suspectGroup{suspects: g.suspects[middle:]}
		}
	}
	return suspectGroup{suspects: g.suspects[:1]}, suspectGroup{suspects: g.suspects[1:]}
}

// classSuspects lists the classes of pods. What came first comes first: a broad group, in it a narrow one, of that a
// class.
func classSuspects(s *cluster.Snapshot, pods []*cluster.Pod) []suspect {
	found, broadGroups := make(map[string]*suspect), make(map[string]map[string]bool)
	for _, p := range pods {
		key, since := p.Class.Key, s.SeekingSince(p)
		c := found[key]
		if c == nil {
			c = &suspect{key: key, broadGroup: p.Namespace}
			found[key] = c
		}
		if c.since.IsZero() || since.Before(c.since) || since.Equal(c.since) && p.ID() < c.name {
			c.since, c.narrowGroup, c.name = since, s.Workload(p), p.ID()
		}
		if broadGroups[key] == nil && p.Namespace != c.broadGroup {
			broadGroups[key] = map[string]bool{c.broadGroup: true}
		}
		if broadGroups[key] != nil {
			broadGroups[key][p.Namespace] = true
		}
	}
	out := make([]suspect, 0, len(found))
	for key, c := range found {
		if shared := broadGroups[key]; shared != nil {
			c.broadGroup = strings.Join(slices.Sorted(maps.Keys(shared)), ",")
		}
		out = append(out, *c)
	}
	return orderSuspects(out)
}

// orderSuspects sorts candidates as groups need them.
func orderSuspects(of []suspect) []suspect {
	broadGroups, owners := make(map[string]time.Time), make(map[[2]string]time.Time)
	for i := range of {
		c := &of[i]
		owner := [2]string{c.broadGroup, c.narrowGroup}
		broadGroups[c.broadGroup] = cluster.Earlier(broadGroups[c.broadGroup], c.since)
		owners[owner] = cluster.Earlier(owners[owner], c.since)
	}
	slices.SortFunc(of, func(a, b suspect) int {
		return cmp.Or(
			broadGroups[a.broadGroup].Compare(broadGroups[b.broadGroup]), strings.Compare(a.broadGroup, b.broadGroup),
			owners[[2]string{a.broadGroup, a.narrowGroup}].Compare(owners[[2]string{b.broadGroup, b.narrowGroup}]),
			strings.Compare(a.narrowGroup, b.narrowGroup),
			a.since.Compare(b.since), strings.Compare(a.key, b.key))
	})
	return of
}

// claimSuspects lists the claims and nodes that are not left out yet, by pool.
func claimSuspects(s *cluster.Snapshot, q *cluster.Quarantine) []suspect {
	found := make(map[string]suspect)
	for _, n := range s.Nodes {
		found[n.Name] = suspect{key: n.Name, name: n.Name}
	}
	for _, c := range s.Claims {
		found[c.Name] = suspect{key: c.Name, broadGroup: c.Pool, name: c.Name, since: c.Created}
	}
	for name := range q.Claims {
		delete(found, name)
	}
	return orderSuspects(slices.Collect(maps.Values(found)))
}

// commandSuspects lists commands.
func commandSuspects(commands []command.Command) []suspect {
	var out []suspect
	for _, c := range commands {
		out = append(out, suspect{key: c.Key(), name: c.Key()})
	}
	return out
}

// undecidedGroups are the classes or claims that are left out and still to be told apart.
func undecidedGroups(leftOut map[string]cluster.Failure, known []suspect) []suspectGroup {
	at := make(map[string]suspect, len(known))
	for _, c := range known {
		at[c.key] = c
	}
	byNumber := make(map[int][]suspect)
	for key, f := range leftOut {
		if f.Group == 0 {
			continue
		}
		c, here := at[key]
		if !here {
			c = suspect{key: key, name: key}
		}
		byNumber[f.Group] = append(byNumber[f.Group], c)
	}
	var out []suspectGroup
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		out = append(out, suspectGroup{suspects: orderSuspects(byNumber[number])})
	}
	return out
}

// decidedFailures is what is left out and not to be told apart.
func decidedFailures(leftOut map[string]cluster.Failure) map[string]cluster.Failure {
	out := maps.Clone(leftOut)
	maps.DeleteFunc(out, func(_ string, f cluster.Failure) bool { return f.Group > 0 })
	return out
}

// anyUndecided reports whether some are to be told apart.
func anyUndecided(leftOut ...map[string]cluster.Failure) bool {
	for _, of := range leftOut {
		for _, f := range of {
			if f.Group > 0 {
				return true
			}
		}
	}
	return false
}

// flatten lists the candidates of all groups.
func flatten(groups []suspectGroup) []suspect {
	var out []suspect
	for _, g := range groups {
		out = append(out, g.suspects...)
	}
	return out
}

// without lists the suspects that are none of the others.
func without(of []suspect, others ...[]suspect) []suspect {
	gone := make(map[string]bool)
	for _, list := range others {
		for i := range list {
			gone[list[i].key] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(of), func(c suspect) bool { return gone[c.key] })
}

// clearedSuspects lists the suspects that were to be told apart and are neither guilty nor still in doubt.
func clearedSuspects(leftOut map[string]cluster.Failure, of []suspect, causes []suspect,
	open []suspectGroup) []suspect {
	return slices.DeleteFunc(without(of, causes, flatten(open)), func(c suspect) bool {
		return leftOut[c.key].Group == 0
	})
}
