package ownership

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Tags that Tenon puts on instances beyond those of the contract. All are written by EC2 itself in the moment of the
// launch, so there is no instance without them, however the launch ends for us.
const (
	// LaunchTagKey names the launch that an instance came from. Instances of one launch are interchangeable.
	LaunchTagKey = "tenon.sh/launch"
	// ClaimsTagKey lists the claims that the launch was for, in a short form. A long list goes on in ClaimsTagKey-2 and
	// so on.
	ClaimsTagKey = "tenon.sh/claims"
	// IdentityTagKey holds the identity of the cluster, the UID of its namespace kube-system: clusters may share a
	// name.
	IdentityTagKey = "tenon.sh/cluster"
)

// IdentityTaggedAnnotationKey on a NodeClaim says that its instance carries the cluster's identity.
const IdentityTaggedAnnotationKey = "tenon.sh/cluster-tagged"

const (
	shortUIDLength = 22
	uidsPerTag     = 11 // a tag's value has at most 256 characters
	// MostTags is how many tags EC2 allows on an instance. Two are kept free for the names of claim and node, which
	// come later.
	MostTags  = 50
	LaterTags = 2
)

// ShortUID is the short form of a claim's UID: the 16 bytes of it in base64. What is not a UUID, as in tests, is
// hashed.
func ShortUID(uid string) string {
	raw, err := hex.DecodeString(strings.ReplaceAll(uid, "-", ""))
	if err != nil || len(raw) != 16 || encodeUID(raw) != uid {
		sum := sha256.Sum256([]byte(uid))
		raw = sum[:16]
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// fullUID is the UID that a mark stands for.
func fullUID(mark string) (uid string, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil || len(raw) != 16 {
		return "", false
	}
	return encodeUID(raw), true
}

func encodeUID(raw []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[0:4], raw[4:6], raw[6:8], raw[8:10], raw[10:16])
}

// ClaimTags writes down for which claims a launch is.
func ClaimTags(claims []Claim) map[string]string {
	var list []string
	for _, c := range claims {
		list = append(list, ShortUID(string(c.UID)))
	}
	slices.Sort(list)
	out := map[string]string{}
	for n := 1; len(list) > 0; n++ {
		some := min(uidsPerTag, len(list))
		out[claimTagKey(n)] = strings.Join(list[:some], "")
		list = list[some:]
	}
	return out
}

func claimTagKey(n int) string {
	if n == 1 {
		return ClaimsTagKey
	}
	return fmt.Sprintf("%s-%d", ClaimsTagKey, n)
}

// readClaimTags reads what marks has written; in the same order.
func readClaimTags(tags map[string]string) []string {
	var out []string
	for n := 1; ; n++ {
		text, ok := tags[claimTagKey(n)]
		if !ok {
			return out
		}
		for len(text) >= shortUIDLength {
			out = append(out, text[:shortUIDLength])
			text = text[shortUIDLength:]
		}
	}
}

// RoomForClaims is how many claims a launch can be for if its instances carry that many other tags. If it is none, a
// launch is for one claim, which has its name on it from the start and needs no mark.
func RoomForClaims(otherTags int) int {
	return max(0, MostTags-LaterTags-otherTags) * uidsPerTag
}

// Claim is the claim that an instance is for.
type Claim struct {
	Name string
	UID  types.UID
}
