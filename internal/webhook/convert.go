package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

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
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, v1beta1.AddToScheme, awsv1.AddToScheme, awsv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme of what is converted: %w", err)
		}
	}
	return &converter{scheme: scheme, expiry: expiry}, nil
}

// convert makes the version that is asked for of an object. What both versions have in the same place keeps the text that it was
// written with, such as 1000 for what a client would write as 1k: tools that compare what they applied with what is there see no
// difference.
func (c *converter) convert(ctx context.Context, raw []byte, version string) ([]byte, error) {
	from, err := c.read(raw)
	if err != nil {
		return nil, err
	}
	kind := from.GetObjectKind().GroupVersionKind()
	if kind.GroupVersion().String() == version {
		return raw, nil
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, fmt.Errorf("reading the version %q that is asked for: %w", version, err)
	}
	made, err := c.scheme.New(gv.WithKind(kind.Kind))
	if err != nil {
		return nil, fmt.Errorf("converting %s to %s: %w", kind.Kind, version, err)
	}
	if err := c.fill(ctx, from, made); err != nil {
		return nil, err
	}
	made.GetObjectKind().SetGroupVersionKind(gv.WithKind(kind.Kind))
	return keepText(raw, from, made)
}

// read reads an object of any version.
func (c *converter) read(raw []byte) (client.Object, error) {
	var meta runtime.TypeMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	kind := schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
	made, err := c.scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("reading an object: %s is no kind that is stored", kind)
	}
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("reading a %s: %w", kind, err)
	}
	return object, nil
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
	return old.ConvertFrom(hub)
}

// setExpiry gives a NodeClaim of v1beta1 what its pool says, because v1 has it on the claim.
func (c *converter) setExpiry(ctx context.Context, object runtime.Object) error {
	claim, ok := object.(*v1.NodeClaim)
	if !ok || !claim.Spec.ExpireAfter.IsZero() {
		return nil
	}
	claim.Spec.ExpireAfter = v1.NeverDuration()
	pool := claim.Labels[v1.NodePoolLabelKey]
	if pool == "" {
		return nil
	}
	expiry, err := c.expiry(ctx, pool)
	if err != nil {
		return fmt.Errorf("looking up when nodes of NodePool %s expire, for NodeClaim %s: %w", pool, claim.Name, err)
	}
	if !expiry.IsZero() {
		claim.Spec.ExpireAfter = expiry
	}
	return nil
}

// keepText writes the converted object with the texts of the one that it was made of, where they mean the same.
func keepText(raw []byte, from, made any) ([]byte, error) {
	var trees [3]any
	for i, object := range []any{json.RawMessage(raw), from, made} {
		text, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("writing an object: %w", err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&trees[i]); err != nil {
			return nil, fmt.Errorf("reading an object again: %w", err)
		}
	}
	return json.Marshal(preserve(trees[0], trees[1], trees[2]))
}
