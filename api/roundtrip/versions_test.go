package roundtrip_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	awsv1beta1 "github.com/tenon-sh/tenon/api/aws/v1beta1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
)

// objects is how many are converted there and back, of all kinds and versions together.
const objects = 10000

// trip is one way there and back.
type trip struct {
	name string
	// object draws what is converted.
	object *rapid.Generator[client.Object]
	// there and back convert; the first makes the other version, the second the drawn one.
	there, back func(client.Object) (client.Object, error)
}

// trips are all ways: each kind from the older version to v1 and back, and from v1 to the older version and back.
func trips() []trip {
	type spoke interface {
		client.Object
		conversion.Convertible
	}
	type hub interface {
		client.Object
		conversion.Hub
	}
	both := func(kind string, old, new *rapid.Generator[client.Object], newSpoke func() spoke,
		newHub func() hub) []trip {
		up := func(o client.Object) (client.Object, error) {
			out := newHub()
			return out, o.(spoke).ConvertTo(out)
		}
		down := func(o client.Object) (client.Object, error) {
			out := newSpoke()
			return out, out.ConvertFrom(o.(hub))
		}
		return []trip{{kind + "/v1beta1-v1-v1beta1", old, up, down}, {kind + "/v1-v1beta1-v1", new, down, up}}
	}
	var out []trip
	out = append(out, both("NodePool", object[v1beta1.NodePool](), object[v1.NodePool](),
		func() spoke { return &v1beta1.NodePool{} }, func() hub { return &v1.NodePool{} })...)
	out = append(out, both("NodeClaim", object[v1beta1.NodeClaim](), object[v1.NodeClaim](),
		func() spoke { return &v1beta1.NodeClaim{} }, func() hub { return &v1.NodeClaim{} })...)
	return append(out, both("EC2NodeClass", object[awsv1beta1.EC2NodeClass](), object[awsv1.EC2NodeClass](),
		func() spoke { return &awsv1beta1.EC2NodeClass{} }, func() hub { return &awsv1.EC2NodeClass{} })...)
}

// object draws an object as a client gets it from an API server: read from JSON.
func object[T any, P interface {
	*T
	client.Object
}]() *rapid.Generator[client.Object] {
	return rapid.Map(draw[T](), func(drawn T) client.Object {
		text, err := json.Marshal(drawn)
		if err != nil {
			panic(fmt.Sprintf("writing a %T: %v", drawn, err))
		}
		out := new(T)
		if err := json.Unmarshal(text, out); err != nil {
			panic(fmt.Sprintf("reading %s: %v", text, err))
		}
		if pool, ok := any(out).(*v1beta1.NodePool); ok && pool.Spec.Template.Spec.NodeClassRef != nil {
			pool.Spec.NodeClassRef = nil // the API server refuses both
		}
		return P(out)
	})
}

// check goes there and back, and says what came back different.
func (trip trip) check(o client.Object) error {
	before, err := json.Marshal(o)
	if err != nil {
		return err
	}
	other, err := trip.there(o)
	if err != nil {
		return err
	}
	again, err := trip.back(other)
	if err != nil {
		return err
	}
	// What an API server stores has been written and read once more.
	after, err := json.Marshal(again)
	if err != nil {
		return err
	}
	if string(before) != string(after) {
		between, _ := json.Marshal(other)
		i := 0
		for i < min(len(before), len(after)) && before[i] == after[i] {
			i++
		}
		from := max(0, i-80)
		return fmt.Errorf("before  …%.300s\nafter   …%.300s\nbetween %.3000s", before[from:], after[from:], between)
	}
	if unchanged, _ := json.Marshal(o); string(unchanged) != string(before) {
		return fmt.Errorf("the conversion changed what it was given\nbefore %s\nafter  %s", before, unchanged)
	}
	return nil
}

// TestThereAndBackIsTheIdentity: nothing that one version can say is lost on the way through the other.
func TestThereAndBackIsTheIdentity(t *testing.T) {
	all := trips()
	for _, trip := range all {
		t.Run(trip.name, func(t *testing.T) {
			t.Parallel()
			for seed := range (objects + len(all) - 1) / len(all) {
				if err := trip.check(trip.object.Example(seed)); err != nil {
					t.Fatalf("seed %d:\n%v", seed, err)
				}
			}
		})
	}
}

// FuzzThereAndBack is the same with inputs that the fuzzer grows.
func FuzzThereAndBack(f *testing.F) {
	all := trips()
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		trip := rapid.SampledFrom(all).Draw(t, "trip")
		if err := trip.check(trip.object.Draw(t, "object")); err != nil {
			t.Fatal(trip.name, err)
		}
	}))
}
