package drift

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// SoftExpiryTime is when a node is to be replaced because its life ends, if the pool wants that done gently: some time
// before its expireAfter is over, when exactly depends on its UID, so that nodes that were born together don't go
// together. The last quarter of the time is left for going.
func SoftExpiryTime(p *cluster.Pool, c *cluster.Claim) (at time.Time, soft bool) {
	ahead := p.Overrides.SoftExpiry
	if ahead <= 0 || c.ExpireAfter.Never || c.ExpireAfter.For <= 0 {
		return time.Time{}, false
	}
	ahead = min(ahead, c.ExpireAfter.For)
	sum := sha256.Sum256([]byte(c.UID)) // even UIDs that are nearly the same come out far apart
	spread := float64(ahead) * 3 / 4
	jitter := time.Duration(spread * float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32))
	return c.Created.Add(c.ExpireAfter.For - ahead + jitter.Truncate(time.Second)), true
}

// Expiring are the nodes whose life ends soon and that may go, where pools ask for it. The hard end stays behind
// it. wake is when the answer may change by itself. removed are nodes that go for other reasons.
func Expiring(s *cluster.Snapshot, e *disrupt.Eligibility, removed map[string]bool) (due []disrupt.Due,
	wake time.Time) {
	for _, p := range s.Pools {
		if p.Overrides.SoftExpiry <= 0 || p.Deleting || p.Static {
			continue
		}
		var nodes []disrupt.Candidate
		for _, c := range s.ClaimsOf(p.Name) {
			at, soft := SoftExpiryTime(p, c)
			switch {
			case !soft || !c.Deleting.IsZero():
			case s.Now.Before(at):
				wake = cluster.Earlier(wake, at)
			default:
				nodes, wake = addDue(nodes, wake, e, c, command.Expired, removed)
			}
		}
		slices.SortFunc(nodes, func(a, b disrupt.Candidate) int {
			first, _ := SoftExpiryTime(p, a.Claim)
			second, _ := SoftExpiryTime(p, b.Claim)
			return cmp.Or(first.Compare(second), strings.Compare(a.Claim.Name, b.Claim.Name))
		})
		due = append(due, disrupt.Due{Pool: p, Reason: command.Expired, Candidates: nodes})
	}
	return due, wake
}
