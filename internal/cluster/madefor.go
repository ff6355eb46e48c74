package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MadeFor says for whom a claim was made, and which of the tries in a row it is: 1 if none has failed before. Owner is
// the key of the workload at the root: see Snapshot.Workload.
type MadeFor struct {
	Owner string
	Try   int
}

// MadeForAnnotation says on a claim for whom it was made, and which try in a row it is: owner=try, separated by commas.
const MadeForAnnotation = "tenon.sh/made-for"

// mostAnnotation is how many bytes an annotation of ours on a claim has at most. The API server allows 256 KiB for all
// annotations of an object together.
const mostAnnotation = 64 << 10

func (m MadeFor) String() string { return m.Owner + "=" + strconv.Itoa(m.Try) }

// FormatMadeFor writes it as an annotation's text.
func FormatMadeFor(list []MadeFor) string {
	parts := make([]string, len(list))
	for i, m := range list {
		parts[i] = m.String()
	}
	return strings.Join(parts, ",")
}

// ParseMadeFor reads what FormatMadeFor wrote. What can be read of a text is read, even if there is an error.
func ParseMadeFor(text string) ([]MadeFor, error) {
	if text == "" {
		return nil, nil
	}
	var out []MadeFor
	var first error // the first says enough
	known := make(map[string]bool)
	for part := range strings.SplitSeq(text, ",") {
		owner, try, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(try)
		if !ok || err != nil || n < 1 || owner == "" || known[owner] {
			if first == nil {
				first = fmt.Errorf("%s: %q is not owner=try, each owner once", MadeForAnnotation,
					part[:min(len(part), mostUID)])
			}
			continue
		}
		known[owner] = true
		out = append(out, MadeFor{Owner: owner, Try: n})
	}
	return out, first
}

// MadeFor says for whom a node for the pods is made, in the order of the owners' keys. If they are too many for an
// annotation, those of whose nodes some failed before come first: their count must go on.
func (s *Snapshot) MadeFor(pods []*Pod) []MadeFor {
	tries := make(map[string]int)
	for _, p := range pods {
		root := s.Workload(p)
		if tries[root] > 0 {
			continue
		}
		tries[root] = 1
		if b := s.WorkloadTries[root]; b != nil {
			tries[root] = b.FailedTries + 1
		}
	}
	out, size := make([]MadeFor, 0, len(tries)), 0
	for owner, try := range tries {
		m := MadeFor{Owner: owner, Try: try}
		out, size = append(out, m), size+len(m.String())+1
	}
	byOwner := func(a, b MadeFor) int { return strings.Compare(a.Owner, b.Owner) }
	if size <= mostAnnotation {
		slices.SortFunc(out, byOwner)
		return out
	}
	slices.SortFunc(out, func(a, b MadeFor) int {
		if c := b.Try - a.Try; c != 0 {
			return c
		}
		return byOwner(a, b)
	})
	size = 0
	for i, m := range out {
		if size += len(m.String()) + 1; size > mostAnnotation {
			out = out[:i]
			break
		}
	}
	slices.SortFunc(out, byOwner)
	return slices.Clone(out)
}

// madeForAll are all workloads that the claim was made for; none if not all of them can be read.
func (c *Claim) madeForAll() []MadeFor {
	if c.MadeForUnread {
		return nil
	}
	return c.MadeFor
}
