package disrupt

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// softExpiryTime is when a node is to be replaced because its life ends, if the pool wants that done gently: some time
// before its expireAfter is over, when exactly depends on its UID, so that nodes that were born together don't go
// together. The last quarter of the time is left for going.
func softExpiryTime(p *cluster.Pool, c *cluster.Claim) (at time.Time, soft bool) {
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

// beginSoftExpiry begins the replacement of nodes whose life ends soon, where pools ask for it. The hard end stays
// behind it.
func (ex *executor) beginSoftExpiry() {
	for _, p := range ex.s.Pools {
		if p.Overrides.SoftExpiry <= 0 || p.Deleting || p.Static {
			continue
		}
		var due []Candidate
		for _, c := range ex.s.ClaimsOf(p.Name) {
			at, soft := softExpiryTime(p, c)
			if !soft || !c.Deleting.IsZero() {
				continue
			}
			if ex.s.Now.Before(at) {
				ex.wake(at)
				continue
			}
			candidate, blocked := ex.eligibility.MayDisrupt(c, command.Expired)
			if blocked != nil {
				ex.wake(blocked.Until)
				continue
			}
			if !ex.removedNodes[candidate.Node.Name] {
				due = append(due, candidate)
			}
		}
		slices.SortFunc(due, func(a, b Candidate) int {
			end, _ := softExpiryTime(p, a.Claim)
			y, _ := softExpiryTime(p, b.Claim)
			return cmp.Or(end.Compare(y), strings.Compare(a.Claim.Name, b.Claim.Name))
		})
		for i := range due {
			if !ex.queueRequired(due[i], command.Expired) {
				ex.noteWaiting(p, command.Expired)
				break
			}
		}
	}
}
