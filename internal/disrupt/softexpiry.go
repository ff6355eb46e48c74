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

// softEnd is when a node is to be replaced because its life ends, if the pool wants that done gently: some time before its
// expireAfter is over, when exactly depends on its UID, so that nodes that were born together don't go together. The last quarter
// of the time is left for going.
func softEnd(p *cluster.Pool, c *cluster.Claim) (at time.Time, soft bool) {
	ahead := p.Care.SoftExpiry
	if ahead <= 0 || c.Expire.Never || c.Expire.For <= 0 {
		return time.Time{}, false
	}
	ahead = min(ahead, c.Expire.For)
	sum := sha256.Sum256([]byte(c.UID)) // even UIDs that are nearly the same come out far apart
	spread := float64(ahead) * 3 / 4
	jitter := time.Duration(spread * float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32))
	return c.Created.Add(c.Expire.For - ahead + jitter.Truncate(time.Second)), true
}

// softExpiry begins the replacement of nodes whose life ends soon, where pools ask for it. The hard end stays behind it.
func (d *desk) softExpiry() {
	for _, p := range d.s.Pools {
		if p.Care.SoftExpiry <= 0 || p.Deleting || p.Static {
			continue
		}
		var due []Candidate
		for _, c := range d.s.ClaimsOf(p.Name) {
			at, soft := softEnd(p, c)
			if !soft || !c.Deleting.IsZero() {
				continue
			}
			if d.s.Now.Before(at) {
				d.wake(at)
				continue
			}
			candidate, stay := d.judge.MayGo(c, command.Expired)
			if stay != nil {
				d.wake(stay.Until)
				continue
			}
			if !d.gone[candidate.Node.Name] {
				due = append(due, candidate)
			}
		}
		slices.SortFunc(due, func(a, b Candidate) int {
			x, _ := softEnd(p, a.Claim)
			y, _ := softEnd(p, b.Claim)
			return cmp.Or(x.Compare(y), strings.Compare(a.Claim.Name, b.Claim.Name))
		})
		for i := range due {
			if !d.enter(due[i], command.Expired) {
				d.queueUp(p, command.Expired)
				break
			}
		}
	}
}
