package command

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// maxPrefix keeps claim names, and so node names, short enough to be label values (63 characters).
const maxPrefix = 52

// ClaimName is a claim's name: its pool's, and a hash of what the claim is for. The same parts give the same name, so
// that asking again is the same act.
func ClaimName(pool string, parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	suffix := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:6]))
	if len(pool) > maxPrefix {
		pool = strings.TrimRight(pool[:maxPrefix], "-.")
	}
	return pool + "-" + suffix
}
