package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// objects is how many are converted there and back, of all kinds and versions together.
const objects = 10000

// poolsSay is what the pools of these tests say: one of them can't be asked.
func poolsSay(_ context.Context, pool string) (v1.NillableDuration, error) {
	switch pool {
	case "a":
		return v1.ParseNillableDuration("720h")
	case "b":
		return v1.NeverDuration(), nil
	}
	return v1.NillableDuration{}, errors.New("the API server does not answer")
}

// journey is one kind in one version, and the version that it goes to and comes back from.
type journey struct {
	kind   schema.GroupVersionKind
	there  string
	object *rapid.Generator[map[string]any]
}

func journeys(c *converter) []journey {
	var out []journey
	for _, of := range []struct{ group, kind string }{{"karpenter.sh", "NodePool"}, {"karpenter.sh", "NodeClaim"},
		{"karpenter.k8s.aws", "EC2NodeClass"}} {
		for _, versions := range [][2]string{{"v1", "v1beta1"}, {"v1beta1", "v1"}} {
			kind := schema.GroupVersionKind{Group: of.group, Version: versions[0], Kind: of.kind}
			out = append(out, journey{kind, of.group + "/" + versions[1], drawn(kind, c.scheme.AllKnownTypes()[kind])})
		}
	}
	return out
}

func testConverter(t testing.TB) *converter {
	t.Helper()
	c, err := newConverter(poolsSay)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// check converts an object there and back, and says what came back different. Of a pool that can't be asked no claim of
// v1beta1 can be converted: that is for the API server to try again, and no property of an object.
func (j journey) check(ctx context.Context, c *converter, object map[string]any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	there, err := c.convert(ctx, raw, j.there)
	if err != nil {
		return fmt.Errorf("there: %w\n%s", err, raw)
	}
	back, err := c.convert(ctx, there, j.kind.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("back: %w\n%s\nbetween %s", err, raw, there)
	}
	before, err := parse(raw)
	if err != nil {
		return err
	}
	after, err := parse(back)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(before, after) {
		again, _ := json.Marshal(before)
		return fmt.Errorf("before  %s\nafter   %s\nbetween %s", again, back, there)
	}
	return nil
}

// asked says whether a claim's pool has to be asked and does not answer.
func (j journey) asked(object map[string]any) bool {
	labels, _ := object["metadata"].(map[string]any)["labels"].(map[string]any)
	return j.kind.Kind == "NodeClaim" && labels[v1.NodePoolLabelKey] == "broken"
}

// TestConvertingThereAndBackIsTheIdentity: whatever is given to the converter, it comes back as it was written.
func TestConvertingThereAndBackIsTheIdentity(t *testing.T) {
	c := testConverter(t)
	all := journeys(c)
	for _, j := range all {
		t.Run(j.kind.Kind+"/"+j.kind.Version, func(t *testing.T) {
			t.Parallel()
			for seed := range (objects + len(all) - 1) / len(all) {
				object := j.object.Example(seed)
				if j.asked(object) {
					object["metadata"].(map[string]any)["labels"] = map[string]any{v1.NodePoolLabelKey: "a"}
				}
				if err := j.check(t.Context(), c, object); err != nil {
					t.Fatalf("seed %d:\n%v", seed, err)
				}
			}
		})
	}
}
