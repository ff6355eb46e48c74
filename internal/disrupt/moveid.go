package disrupt

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// ClaimIdentity tells a claim from all others, those included that had the same name before it: names derive from what
// claims are for, and come back.
func ClaimIdentity(c *cluster.Claim) string {
	if c.UID == "" {
		return c.Name
	}
	return c.Name + "/" + c.UID
}

// MoveID names a move of the claims with these identities. The same nodes and reason give the same name, and others
// never do; the reason can be read off it.
func MoveID(reason command.Reason, claims []string) string {
	h := sha256.New()
	for _, id := range slices.Sorted(slices.Values(claims)) {
		h.Write([]byte(id))
		h.Write([]byte{0})
	}
	sum := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:6])
	return strings.ToLower(string(reason) + "-" + sum)
}

// MoveReason is the reason of a move by its name; empty if it is none of ours.
func MoveReason(move string) command.Reason {
	word, _, _ := strings.Cut(move, "-")
	switch word {
	case "underutilized":
		return command.Underutilized
	case "drifted":
		return command.Drifted
	case "expired":
		return command.Expired
	case "unhealthy":
		return command.Unhealthy
	case "interrupted":
		return command.Interrupted
	case "empty":
		return command.Empty
	}
	return ""
}

// MoveOf describes a move that takes nodes away, for people.
func MoveOf(id string, reason command.Reason, nodes []Candidate) Move {
	m := Move{ID: id, Reason: reason}
	for i := range nodes {
		c := &nodes[i]
		m.Claims = append(m.Claims, c.Claim.Name)
		m.Before, m.Evicted, m.Cost = m.Before+c.Price, m.Evicted+c.Evicted, m.Cost+c.Cost
	}
	return m
}
