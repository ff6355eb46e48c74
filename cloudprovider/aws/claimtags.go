package aws

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
	// mostTags is how many tags EC2 allows on an instance. Two are kept free for the names of claim and node, which
	// come later.
	mostTags  = 50
	laterTags = 2
)

// shortUID is the short form of a claim's UID: the 16 bytes of it in base64. What is not a UUID, as in tests, is
// hashed.
func shortUID(uid string) string {
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

// claimTags writes down for which claims a launch is.
func claimTags(uids []string) map[string]string {
	var list []string
	for _, uid := range uids {
		list = append(list, shortUID(uid))
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

// roomForClaims is how many claims a launch can be for if its instances carry that many other tags. If it is none, a
// launch is for one claim, which has its name on it from the start and needs no mark.
func roomForClaims(otherTags int) int {
	return max(0, mostTags-laterTags-otherTags) * uidsPerTag
}

// launchToken names a launch for the claims: the same for the same claims, whatever their order, so that asking EC2
// again is the same act. A claim's number of tries is part of it, because EC2 gives the same answer to the same token
// for ever.
func launchToken(cluster string, requests []*launchRequest) string {
	lines := make([]string, 0, len(requests)+1)
	for _, q := range requests {
		lines = append(lines, fmt.Sprintf("%s#%d", q.claim.UID, q.failures))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(cluster + "\n" + strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16])
}

func uidsOf(requests []*launchRequest) []string {
	out := make([]string, 0, len(requests))
	for _, q := range requests {
		out = append(out, string(q.claim.UID))
	}
	return out
}

// claimIdentity is the claim that an instance is for.
type claimIdentity struct {
	claim string
	uid   types.UID
}
