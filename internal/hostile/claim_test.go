package hostile_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/actuate"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/hostile"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

// createdClaims keeps the NodeClaims that are created.
type createdClaims struct {
	client.Client
	claims []*v1.NodeClaim
}

func (n *createdClaims) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	n.claims = append(n.claims, obj.(*v1.NodeClaim))
	return nil
}

// written is what a plan for the book writes for its new nodes.
func written(t *testing.T, book *ingest.Book) (claims []*v1.NodeClaim, orders []command.CreateClaim,
	s *cluster.Snapshot) {
	t.Helper()
	s = book.Snapshot()
	paper := &createdClaims{}
	actor := actuate.Actor{Objects: actuate.Objects{Client: paper}, Now: time.Now,
		Names: func() *resource.Names { return s.Names }}
	for _, c := range plan.Make(s, policy(), nil, nil).Commands {
		create, ok := c.(command.CreateClaim)
		if !ok {
			continue
		}
		orders = append(orders, create)
		if out := actor.Do(t.Context(), create); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	return paper.claims, orders, s
}

// TestClaimsAreSmall: whatever pods say, the NodeClaims that are made for them are small, and say for whom they are.
func TestClaimsAreSmall(t *testing.T) {
	const most = 64 << 10
	largest := 0
	for _, c := range slices.Concat(hostile.Cases(), hostile.AtTheBounds()) {
		book := newBook(t, ordinary)
		for _, o := range c.Objects {
			feed(book, o)
		}
		stock(t, book)
		claims, _, _ := written(t, book)
		if len(claims) == 0 {
			t.Errorf("%s: no claim is made for the ordinary pods", c.Name)
		}
		for _, claim := range claims {
			text, err := json.Marshal(claim)
			if err != nil {
				t.Fatal(err)
			}
			largest = max(largest, len(text))
			if len(text) >= most {
				t.Errorf("%s: a NodeClaim has %d bytes, expected less than %d", c.Name, len(text), most)
			}
			made, err := cluster.ParseMadeFor(claim.Annotations[cluster.MadeForAnnotation])
			if err != nil || len(made) == 0 {
				t.Errorf("%s: for whom a NodeClaim is made reads %v, %v", c.Name, made, err)
			}
		}
	}
	t.Logf("the largest NodeClaim has %d bytes", largest)
}

// TestShortClaimsMeanTheSame: what is left out of a claim allows no offering that its pods do not.
func TestShortClaimsMeanTheSame(t *testing.T) {
	book := newBook(t, ordinary)
	for i, pod := range hostile.Excluding(3, 20_000) {
		values := &pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values
		if i == 1 {
			*values = append(*values, "arm64")
		}
		book.SetPod(pod)
	}
	_, orders, s := written(t, book)
	met := false
	for i := range orders {
		c := &orders[i]
		catalog := s.Pool(c.Pool).Catalog
		for _, p := range c.Pods {
			if p.Namespace != hostile.Namespace {
				continue
			}
			for k := range catalog.Offerings {
				label := catalog.Offerings[k].Label
				if _, allowed := c.Requirements.FirstMiss(label); !allowed {
					continue
				}
				met = true
				if key, ok := p.Class.MatchesLabels(label); !ok {
					t.Fatalf("%s allows %v, and pod %s does not, by label %s", c.Name, catalog.Offerings[k].AllLabels(),
						p.Name, key)
				}
			}
		}
		values, _ := c.Requirements.Get("kubernetes.io/arch")
		if n := len(c.Requirements.String()); n > 32<<10 {
			t.Errorf("the requirements take %d bytes: %v", n, values)
		}
	}
	if !met {
		t.Error("no offering is allowed for the pods")
	}
}
