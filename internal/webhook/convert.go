package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	awsv1beta1 "github.com/tenon-sh/tenon/api/aws/v1beta1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
)

// Expiry says when the nodes of a NodePool expire. A pool that does not exist has nodes that never do.
type Expiry func(ctx context.Context, pool string) (v1.NillableDuration, error)

// converter makes one version of an object of another.
type converter struct {
	scheme *runtime.Scheme
	expiry Expiry
}

func newConverter(expiry Expiry) (*converter, error) {
	scheme := runtime.NewScheme()
	adds := []func(*runtime.Scheme) error{v1.AddToScheme, v1beta1.AddToScheme, awsv1.AddToScheme,
		awsv1beta1.AddToScheme}
	for _, add := range adds {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme of what is converted: %w", err)
		}
	}
	return &converter{scheme: scheme, expiry: expiry}, nil
}

// convert makes the version that is asked for of an object. What both versions have in the same place keeps the text
// that it was written with, such as 1000 for what a client would write as 1k: tools that compare what they applied with
// what is there see no difference. What would still come back different is found by converting back, and noted on the
// object: whatever the types make of it, converting there and back is the identity.
func (c *converter) convert(ctx context.Context, raw []byte, version string) ([]byte, error) {
	object, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	from := kindOf(object)
	if from.GroupVersion().String() == version {
		return raw, nil
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, fmt.Errorf("reading the version %q that is asked for: %w", version, err)
	}
	to := gv.WithKind(from.Kind)
	texts := takeTexts(object, from)
	made, err := c.turn(ctx, object, to)
	if err != nil {
		return nil, err
	}
	c.restoreTexts(made, texts, to)
	if back, err := c.turn(ctx, made, from); err == nil { // else the object is readable all the same
		addTexts(made, to, back, object)
	}
	return json.Marshal(made)
}

// kindOf says what an object is.
func kindOf(object map[string]any) schema.GroupVersionKind {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return schema.FromAPIVersionAndKind(version, kind)
}

// turn makes an object of a kind of one in another version, by way of the types of the API. The object given is not
// changed.
func (c *converter) turn(ctx context.Context, object map[string]any,
	to schema.GroupVersionKind) (map[string]any, error) {
	made, err := c.scheme.New(to)
	if err != nil {
		return nil, fmt.Errorf("converting %s to %s: %w", to.Kind, to.GroupVersion(), err)
	}
	from, written, stand, err := c.read(object)
	if err != nil {
		return nil, err
	}
	if err := c.fill(ctx, from, made); err != nil {
		return nil, err
	}
	made.GetObjectKind().SetGroupVersionKind(to)
	read, err := treeOf(from)
	if err != nil {
		return nil, err
	}
	out, err := treeOf(made)
	if err != nil {
		return nil, err
	}
	kept, _ := preserve(written, read, out).(map[string]any)
	prune(reflect.TypeOf(made), kept)
	stand.back(kept)
	return kept, nil
}

// read reads an object of any version. What its type can't read is replaced by something that it can: written is the
// object as it was read, and stand knows what the original was.
func (c *converter) read(object map[string]any) (from client.Object, written map[string]any,
	stand *standIns, err error) {
	kind := kindOf(object)
	made, err := c.scheme.New(kind)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("reading an object: %w", err)
	}
	from, ok := made.(client.Object)
	if !ok {
		return nil, nil, nil, fmt.Errorf("reading an object: %s is no kind that is stored", kind)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("reading a %s: %w", kind, err)
	}
	written = runtime.DeepCopyJSON(object)
	if json.Unmarshal(text, from) == nil {
		return from, written, nil, nil
	}
	stand = newStandIns(text)
	stand.fields(reflect.TypeOf(from).Elem(), written)
	if text, err = json.Marshal(written); err != nil {
		return nil, nil, nil, fmt.Errorf("reading a %s: %w", kind, err)
	}
	// The first try may have left something in it.
	from, _ = reflect.New(reflect.TypeOf(from).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(text, from); err != nil {
		return nil, nil, nil, fmt.Errorf("reading a %s: %w", kind, err)
	}
	return from, written, stand, nil
}

// fill converts one object into another.
func (c *converter) fill(ctx context.Context, from, into runtime.Object) error {
	if old, ok := from.(conversion.Convertible); ok {
		hub, ok := into.(conversion.Hub)
		if !ok {
			return fmt.Errorf("converting a %T: a %T is not the version that is stored", from, into)
		}
		if err := old.ConvertTo(hub); err != nil {
			return err
		}
		return c.setExpiry(ctx, into)
	}
	hub, ok := from.(conversion.Hub)
	if !ok {
		return fmt.Errorf("converting a %T: it has one version only", from)
	}
	old, ok := into.(conversion.Convertible)
	if !ok {
		return fmt.Errorf("converting a %T: there is no way to a %T", from, into)
	}
	if claim, ok := from.(*v1.NodeClaim); ok {
		hub = c.withoutExpiry(ctx, claim)
	}
	return old.ConvertFrom(hub)
}
