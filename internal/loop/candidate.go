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

// candidate is something that the planner may fail on: a class of pods, a claim or a command.
type candidate struct {
	key string
	// space is what it shares with most others: the namespaces of a class, the pool of a claim. owner is what it shares
	// with fewer. Candidates are told apart by space first, so that one tenant's mistakes hold up nobody else for long.
	space, owner string
	// name is for people.
	name  string
	since time.Time
}

// group is candidates that are told apart together. They are in order: those of a space stand beside each other, and
// there those of an owner.
type group struct {
	of []candidate
	// fails says that the planner is known to fail on some of them.
	fails bool
}

// split makes two groups of one that has more than one candidate.
func (g group) split() (group, group) {
	for _, part := range []func(c *candidate) string{
		func(c *candidate) string { return c.space },
		func(c *candidate) string { return c.owner },
		func(c *candidate) string { return c.key },
	} {
		var starts []int
		for i := range g.of {
			if i == 0 || part(&g.of[i]) != part(&g.of[i-1]) {
				starts = append(starts, i)
			}
		}
		if len(starts) > 1 {
			middle := starts[(len(starts)+1)/2]
			return group{of: g.of[:middle]}, group{of: g.of[middle:]}
		}
	}
	return group{of: g.of[:1]}, group{of: g.of[1:]}
}

// classes lists the classes of pods. What came first comes first: a space, in it an owner, of that a class.
func classes(s *cluster.Snapshot, pods []*cluster.Pod) []candidate {
	found, spaces := make(map[string]*candidate), make(map[string]map[string]bool)
	for _, p := range pods {
		key, since := p.Class.Key, s.SoughtSince(p)
		c := found[key]
		if c == nil {
			c = &candidate{key: key, space: p.Namespace}
			found[key] = c
		}
		if c.since.IsZero() || since.Before(c.since) || since.Equal(c.since) && p.ID() < c.name {
			c.since, c.owner, c.name = since, s.Root(p), p.ID()
		}
		if spaces[key] == nil && p.Namespace != c.space {
			spaces[key] = map[string]bool{c.space: true}
		}
		if spaces[key] != nil {
			spaces[key][p.Namespace] = true
		}
	}
	out := make([]candidate, 0, len(found))
	for key, c := range found {
		if shared := spaces[key]; shared != nil {
			c.space = strings.Join(slices.Sorted(maps.Keys(shared)), ",")
		}
		out = append(out, *c)
	}
	return inOrder(out)
}

// inOrder sorts candidates as groups need them.
func inOrder(of []candidate) []candidate {
	spaces, owners := make(map[string]time.Time), make(map[[2]string]time.Time)
	for i := range of {
		c := &of[i]
		owner := [2]string{c.space, c.owner}
		spaces[c.space] = cluster.Earlier(spaces[c.space], c.since)
		owners[owner] = cluster.Earlier(owners[owner], c.since)
	}
	slices.SortFunc(of, func(a, b candidate) int {
		return cmp.Or(
			spaces[a.space].Compare(spaces[b.space]), strings.Compare(a.space, b.space),
			owners[[2]string{a.space, a.owner}].Compare(owners[[2]string{b.space, b.owner}]), strings.Compare(a.owner, b.owner),
			a.since.Compare(b.since), strings.Compare(a.key, b.key))
	})
	return of
}

// machines lists the claims and nodes that are not left out yet, by pool.
func machines(s *cluster.Snapshot, q *cluster.Quarantine) []candidate {
	found := make(map[string]candidate)
	for _, n := range s.Nodes {
		found[n.Name] = candidate{key: n.Name, name: n.Name}
	}
	for _, c := range s.Claims {
		found[c.Name] = candidate{key: c.Name, space: c.Pool, name: c.Name, since: c.Created}
	}
	for name := range q.Claims {
		delete(found, name)
	}
	return inOrder(slices.Collect(maps.Values(found)))
}

// orders lists commands.
func orders(commands []command.Command) []candidate {
	var out []candidate
	for _, c := range commands {
		out = append(out, candidate{key: c.Key(), name: c.Key()})
	}
	return out
}

// suspects are the classes or claims that are left out and still to be told apart.
func suspects(left map[string]cluster.Failure, known []candidate) []group {
	at := make(map[string]candidate, len(known))
	for _, c := range known {
		at[c.key] = c
	}
	byNumber := make(map[int][]candidate)
	for key, f := range left {
		if f.Group == 0 {
			continue
		}
		c, here := at[key]
		if !here {
			c = candidate{key: key, name: key}
		}
		byNumber[f.Group] = append(byNumber[f.Group], c)
	}
	var out []group
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		out = append(out, group{of: inOrder(byNumber[number])})
	}
	return out
}

// settled is what is left out and not to be told apart.
func settled(left map[string]cluster.Failure) map[string]cluster.Failure {
	out := maps.Clone(left)
	maps.DeleteFunc(out, func(_ string, f cluster.Failure) bool { return f.Group > 0 })
	return out
}

// unsettled reports whether some are to be told apart.
func unsettled(left ...map[string]cluster.Failure) bool {
	for _, of := range left {
		for _, f := range of {
			if f.Group > 0 {
				return true
			}
		}
	}
	return false
}

// flat lists the candidates of all groups.
func flat(groups []group) []candidate {
	var out []candidate
	for _, g := range groups {
		out = append(out, g.of...)
	}
	return out
}

// without lists the candidates that are none of the others.
func without(of []candidate, others ...[]candidate) []candidate {
	gone := make(map[string]bool)
	for _, list := range others {
		for i := range list {
			gone[list[i].key] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(of), func(c candidate) bool { return gone[c.key] })
}

// freed lists the candidates that were to be told apart and are neither guilty nor still in doubt.
func freed(left map[string]cluster.Failure, of []candidate, guilty []candidate, open []group) []candidate {
	return slices.DeleteFunc(without(of, guilty, flat(open)), func(c candidate) bool { return left[c.key].Group == 0 })
}
