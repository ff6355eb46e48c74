package drift

import (
	"errors"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// Each instance is asked about soon after its launch, again after a while, and at once when its NodeClass changes.
func TestWhenTheCloudIsAsked(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	class := cluster.ClassRef{Group: "g", Kind: "Class", Name: "c"}
	ref := &v1.NodeClassReference{Group: "g", Kind: "Class", Name: "c"}
	c := &cluster.Claim{Name: "n", UID: "u", ProviderID: "m", Conditions: []cluster.Condition{{Type: cluster.Launched,
		Status: cluster.True}, {Type: cluster.Drifted, Status: cluster.True, Reason: "AMIDrift"}}}
	st := New()
	st.Track(c, ref, now)
	if st.Of(c) != "AMIDrift" {
		t.Error("what the cloud said before a restart is forgotten")
	}
	due := st.Due(now.Add(firstDrift))
	if len(due) != 1 || due[0].Claim != "n" || len(st.Due(now.Add(firstDrift))) > 0 {
		t.Fatalf("due are %v", due)
	}
	now = now.Add(firstDrift)
	if !st.Answered(due[0], c, "", nil, now) || st.Of(c) != "" || st.Answered(due[0], c, "", nil, now) {
		t.Error("that it has not drifted is news, once")
	}
	if st.Answered(due[0], c, "x", errors.New("boom"), now); st.Of(c) != "" {
		t.Error("an error is an answer")
	}
	for i, version := range []string{"1", "1", "2"} {
		if news := st.NoteVersion(class, version); news != (i == 2) {
			t.Errorf("version %s after %d others: news is %t", version, i, news)
		}
	}
	st.AskSoon(class, now.Add(hastyDrift))
	if len(st.Due(now.Add(hastyDrift))) != 1 {
		t.Error("nobody asks although the class has changed")
	}
	st.Forget("u")
	if len(st.Due(now.Add(time.Hour))) > 0 || st.Answered(due[0], c, "AMIDrift", nil, now) {
		t.Error("a claim that is gone is asked about")
	}
}
