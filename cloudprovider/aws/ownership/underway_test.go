package ownership

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// TestGivenOnce deals out the instances of a launch twice, once by a look that saw a part of it.
func TestGivenOnce(t *testing.T) {
	o := NewRegister()
	list := []Claim{{UID: "a"}, {UID: "b"}, {UID: "c"}}
	r := o.BeginLaunch("lab", slices.Clone(list))
	if len(r.Claims) != 3 {
		t.Fatalf("%d claims are elsewhere", 3-len(r.Claims))
	}
	if o.BeginLaunch("lab", list[:1]) != nil {
		t.Error("a claim is part of two launches")
	}
	o.NoteLost(r, errors.New("lost"), time.Unix(0, 0), time.Unix(0, 0))
	o.mu.Lock()
	o.Assign(&Assignment{Claim: Claim{UID: "c"}, ID: "i-1"})
	o.Assign(&Assignment{Claim: Claim{UID: "a"}, ID: "i-1"}) // too late
	o.mu.Unlock()
	if _, mine, err := o.MayAskAgain(r, time.Unix(1, 0)); !mine || err != nil {
		t.Fatalf("the launch is not ours to ask for: %v", err)
	}
	given := o.AssignLaunched(r, []string{"i-1", "i-2", "i-3"}, func(id string, _ Claim) *cloudprovider.Instance {
		return &cloudprovider.Instance{ProviderID: id}
	}, time.Unix(1, 0))
	if len(given) != 2 {
		t.Errorf("%d instances were given away, want 2", len(given))
	}
	seen := map[string]types.UID{}
	for uid, a := range o.byClaim {
		if other, twice := seen[a.ID]; twice || o.byInstance[a.ID].UID != uid || a.CreateAnswer == nil {
			t.Errorf("%s is that of %s and %s", a.ID, uid, other)
		}
		seen[a.ID] = uid
	}
	if len(seen) != 3 || o.byClaim["c"].ID != "i-1" || len(o.launching)+len(o.callsUnderWay) != 0 {
		t.Errorf("given away are %v; %d are being launched", seen, len(o.launching))
	}
}

// TestGoneForGood forgets an instance: the next launch for its claim must be another to EC2.
func TestGoneForGood(t *testing.T) {
	for name, end := range map[string]func(*Register){
		"EC2 says so":      func(o *Register) { o.Forget("i-1", time.Unix(9000, 0)) },
		"it is not listed": func(o *Register) { o.prune(nil, time.Unix(9000, 0)) },
		"it shuts down":    func(o *Register) { o.LeaveClaim("i-1", time.Unix(9000, 0)) },
	} {
		o := NewRegister()
		o.Assign(&Assignment{Claim: Claim{UID: "a"}, ID: "i-1", LaunchedAt: time.Unix(1000, 0)})
		end(o)
		if o.byClaim["a"] != nil || o.tries["a"].times != 1 {
			t.Errorf("%s: the claim has %v and was tried %d times", name, o.byClaim["a"], o.tries["a"].times)
		}
	}
}
