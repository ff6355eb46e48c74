package ownership

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

func TestMarks(t *testing.T) {
	var uids []string
	for range 40 {
		uids = append(uids, string(uuid.NewUUID()))
	}
	var claims []Claim
	for _, uid := range uids {
		claims = append(claims, Claim{UID: types.UID(uid)})
	}
	tags := ClaimTags(claims)
	for key, value := range tags {
		if len(value) > 256 {
			t.Errorf("tag %s has %d characters", key, len(value))
		}
	}
	var got []string
	for _, m := range readClaimTags(tags) {
		uid, ok := fullUID(m)
		if !ok {
			t.Fatalf("mark %q can't be read", m)
		}
		got = append(got, uid)
	}
	slices.Sort(got)
	slices.Sort(uids)
	if !slices.Equal(got, uids) {
		t.Errorf("wrote %v, read %v", uids, got)
	}
	if len(ShortUID("not-a-uuid")) != shortUIDLength || ShortUID("not-a-uuid") == ShortUID("another") {
		t.Error("a UID of another form has no mark of its own")
	}
	if n := RoomForClaims(60); n != 0 {
		t.Errorf("with too many tags there is room to mark %d claims", n)
	}
}

func TestTokens(t *testing.T) {
	token := func(cluster string, refused int, uids ...types.UID) string {
		var claims []Claim
		for _, uid := range uids {
			claims = append(claims, Claim{UID: uid})
		}
		return NewLaunch(cluster, claims, func(uid types.UID) int {
			if uid == "b" {
				return refused
			}
			return 0
		}).Token
	}
	one := token("lab", 0, "a", "b")
	if one != token("lab", 0, "b", "a") {
		t.Error("the order of claims changes the token")
	}
	for name, other := range map[string]string{
		"another try":     token("lab", 1, "a", "b"),
		"fewer":           token("lab", 0, "a"),
		"another cluster": token("other", 0, "a", "b"),
	} {
		if other == one {
			t.Errorf("%s gives the same token", name)
		}
	}
}

func TestProviderIDs(t *testing.T) {
	if id, err := InstanceID(ProviderID("us-west-2a", "i-0123456789abcdef0")); err != nil ||
		id != "i-0123456789abcdef0" {
		t.Errorf("read %q (%v)", id, err)
	}
	for _, bad := range []string{"", "i-0123456789abcdef0", "kwok://x", "aws:///us-west-2a/",
		"aws:///us-west-2a/i-xyz"} {
		if id, err := InstanceID(bad); err == nil {
			t.Errorf("%q was read as %s", bad, id)
		}
	}
}
