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
	// ClaimsTagKey lists the claims that the launch was for, in a short form. A long list goes on in ClaimsTagKey-2 and so on.
	ClaimsTagKey = "tenon.sh/claims"
	// IdentityTagKey holds the identity of the cluster, the UID of its namespace kube-system: clusters may share a name.
	IdentityTagKey = "tenon.sh/cluster"
)

// IdentityTaggedAnnotationKey on a NodeClaim says that its instance carries the cluster's identity.
const IdentityTaggedAnnotationKey = "tenon.sh/cluster-tagged"

const (
	markLength  = 22
	marksPerTag = 11 // a tag's value has at most 256 characters
	// mostTags is how many tags EC2 allows on an instance. Two are kept free for the names of claim and node, which come
	// later.
	mostTags  = 50
	laterTags = 2
)

// mark is the short form of a claim's UID: the 16 bytes of it in base64. What is not a UUID, as in tests, is hashed.
func mark(uid string) string {
	raw, err := hex.DecodeString(strings.ReplaceAll(uid, "-", ""))
	if err != nil || len(raw) != 16 || spell(raw) != uid {
		sum := sha256.Sum256([]byte(uid))
		raw = sum[:16]
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// unmark is the UID that a mark stands for.
func unmark(mark string) (uid string, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil || len(raw) != 16 {
		return "", false
	}
	return spell(raw), true
}

func spell(raw []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[0:4], raw[4:6], raw[6:8], raw[8:10], raw[10:16])
}

// marks writes down for which claims a launch is.
func marks(uids []string) map[string]string {
	var list []string
	for _, uid := range uids {
		list = append(list, mark(uid))
	}
	slices.Sort(list)
	out := map[string]string{}
	for n := 1; len(list) > 0; n++ {
		some := min(marksPerTag, len(list))
		out[marksKey(n)] = strings.Join(list[:some], "")
		list = list[some:]
	}
	return out
}

func marksKey(n int) string {
	if n == 1 {
		return ClaimsTagKey
	}
	return fmt.Sprintf("%s-%d", ClaimsTagKey, n)
}

// readMarks reads what marks has written; in the same order.
func readMarks(tags map[string]string) []string {
	var out []string
	for n := 1; ; n++ {
		text, ok := tags[marksKey(n)]
		if !ok {
			return out
		}
		for len(text) >= markLength {
			out = append(out, text[:markLength])
			text = text[markLength:]
		}
	}
}

// roomForMarks is how many claims a launch can be for if its instances carry that many other tags. If it is none, a launch
// is for one claim, which has its name on it from the start and needs no mark.
func roomForMarks(otherTags int) int {
	return max(0, mostTags-laterTags-otherTags) * marksPerTag
}

// launchToken names a launch for the claims: the same for the same claims, whatever their order, so that asking EC2 again
// is the same act. A claim's number of tries is part of it, because EC2 gives the same answer to the same token for ever.
func launchToken(cluster string, buyers []*buyer) string {
	lines := make([]string, 0, len(buyers)+1)
	for _, b := range buyers {
		lines = append(lines, fmt.Sprintf("%s#%d", b.claim.UID, b.try))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(cluster + "\n" + strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16])
}

func uidsOf(buyers []*buyer) []string {
	out := make([]string, 0, len(buyers))
	for _, b := range buyers {
		out = append(out, string(b.claim.UID))
	}
	return out
}

// owner is the claim that an instance is for.
type owner struct {
	claim string
	uid   types.UID
}
