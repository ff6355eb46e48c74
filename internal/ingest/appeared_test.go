package ingest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/command"
)

// The API server's clock may be behind ours: our own claims are as old as we have known them.
func TestOwnClaimsAreAsOldAsTheyAreKnown(t *testing.T) {
	b, _ := newBook()
	began := b.now()
	claim := func(name, uid, version string) *v1.NodeClaim {
		return &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version,
			CreationTimestamp: metav1.NewTime(began.Add(-10 * time.Minute))}}
	}
	b.Begin(command.CreateClaim{Name: "ours"})
	b.SetClaim(claim("ours", "1", "1"))
	b.SetClaim(claim("theirs", "2", "1"))
	later := began.Add(time.Hour)
	b.now = func() time.Time { return later }
	b.SetClaim(claim("ours", "1", "2"))
	for name, want := range map[string]time.Time{"ours": began, "theirs": began.Add(-10 * time.Minute)} {
		if got := b.Snapshot().Claim(name).ExistsSince(); !got.Equal(want) {
			t.Errorf("%s is since %s, want %s", name, got, want)
		}
	}
	b.DeleteClaim("ours")
	b.SetClaim(claim("ours", "3", "1"))
	if got := b.Snapshot().Claim("ours").FirstSeen; got.Equal(began) {
		t.Error("a namesake is as old as the claim before it")
	}
}
