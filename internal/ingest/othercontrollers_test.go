package ingest

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// autoMode is the NodeClass of EKS Auto Mode.
func autoMode() *v1.NodeClassReference {
	return &v1.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}
}

func otherPool(name string) *v1.NodePool {
	p := pool(name)
	p.Spec.Template.Spec.NodeClassRef = autoMode()
	return p
}

func otherClaimObject(name, uid string) *v1.NodeClaim {
	c := claimObject(name, "5")
	c.UID, c.Spec.NodeClassRef = types.UID(uid), autoMode()
	return c
}

func TestPoolsOfOtherControllers(t *testing.T) {
	b, _ := newBook()
	want := []cluster.OtherPool{{Name: "general-purpose", NodeClass: cluster.ClassRef{Group: "eks.amazonaws.com",
		Kind: "NodeClass", Name: "default"}}}
	b.SetPool(pool("default"))
	b.SetPool(otherPool("general-purpose"))
	if s := b.Snapshot(); s.Pool("general-purpose") != nil || s.Pool("default") == nil ||
		!slices.Equal(s.OtherPools, want) {
		t.Errorf("pools %v, others %v", s.Pools, s.OtherPools)
	}
	rev := b.Rev()
	changed := otherPool("general-purpose")
	changed.Status.Nodes = 3
	b.SetPool(changed)
	if b.Rev() != rev {
		t.Error("a change of a pool that belongs to another has everything planned again")
	}
	b.setBrokenPool(otherPool("broken"), []decode.Unreadable{{Path: "spec.limits"}})
	if s := b.Snapshot(); s.Pool("broken") != nil || len(s.OtherPools) != 2 {
		t.Errorf("one that can't be read: pools %v, others %v", s.Pools, s.OtherPools)
	}
	b.DeletePool("broken")
	b.DeletePool("general-purpose")
	if s := b.Snapshot(); len(s.OtherPools) != 0 {
		t.Errorf("others %v, and all are gone", s.OtherPools)
	}
}

// A name may come back on the other side.
func TestNamesChangeHands(t *testing.T) {
	b, _ := newBook()
	for _, ours := range []bool{true, false, true} {
		p, c := pool("x"), claimObject("x-1", "5")
		c.UID = "1"
		if !ours {
			p, c = otherPool("x"), otherClaimObject("x-1", "2")
		}
		b.SetPool(p)
		b.SetClaim(c)
		s := b.Snapshot()
		if (s.Pool("x") != nil) != ours || (s.Claim("x-1") != nil) != ours || (len(s.OtherPools) == 0) != ours {
			t.Errorf("ours %v: pools %v, claims %v, others %v", ours, s.Pools, s.Claims, s.OtherPools)
		}
		if got := b.claimUID("x-1"); got != string(c.UID) {
			t.Errorf("ours %v: the claim is known by UID %q, want %q", ours, got, c.UID)
		}
	}
}

func TestClaimsAndNodesOfOtherControllers(t *testing.T) {
	b, _ := newBook()
	claim := otherClaimObject("a", "1")
	claim.Status.ProviderID, claim.Status.NodeName = "aws:///zone/i-1", "theirs"
	claim.Annotations = map[string]string{v1.NodeClaimTerminationTimestampAnnotationKey: "soon"}
	b.SetClaim(claim)
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "theirs",
		Labels: map[string]string{"eks.amazonaws.com/nodeclass": "default"}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///zone/i-1"}})
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ours",
		Labels: map[string]string{"karpenter.kwok.sh/kwoknodeclass": "default"}}})
	s := b.Snapshot()
	if len(s.Claims) != 0 || len(s.Notes) != 0 || s.Node("theirs").Ours || s.ClaimOf("theirs") != nil ||
		!s.Node("ours").Ours {
		t.Errorf("claims %v, notes %v, their node ours %v, our node ours %v", s.Claims, s.Notes, s.Node("theirs").Ours,
			s.Node("ours").Ours)
	}
	if !slices.ContainsFunc(s.SchedulerView().Hosts(), func(h cluster.Host) bool {
		return h.Name == "theirs" && !h.Closed
	}) {
		t.Error("their node is no place for pods")
	}
	if got := b.claimUID("a"); got != "1" {
		t.Errorf("the claim is known by UID %q: a new leader would wait for it in vain", got)
	}
	b.DeleteClaim("a")
	if got := b.claimUID("a"); got != "" {
		t.Errorf("a claim that is gone is known by UID %q", got)
	}
}

// Should the cloud list machines of theirs, whose tags are like ours, they are not taken for machines that nobody
// claims.
func TestTheirMachinesAreNoOrphans(t *testing.T) {
	b, _ := newBook()
	claim := otherClaimObject("a", "1")
	claim.Status.ProviderID = "cloud://a"
	b.SetClaim(claim)
	b.SetClaim(otherClaimObject("b", "2"))
	b.SetInventory(time.Now(), []*cloudprovider.Instance{
		{ProviderID: "cloud://a"}, {ProviderID: "cloud://b", ClaimName: "b", ClaimUID: "2"}, {ProviderID: "cloud://c",
			ClaimName: "c", ClaimUID: "3"}, {ProviderID: "cloud://d"},
	})
	var got []string
	for _, i := range b.Snapshot().Inventory.Instances {
		got = append(got, i.ProviderID)
	}
	if !slices.Equal(got, []string{"cloud://c", "cloud://d"}) {
		t.Errorf("the machines that are ours to look after are %v", got)
	}
}
