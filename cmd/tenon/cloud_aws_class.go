package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// storedClasses reads EC2NodeClasses from the watch that also tells the core of them. By a watch of its own the provider could
// know an older class than the core, which asks about what has just changed: it would hear that a ready class is not, or that
// nothing has drifted, and not ask again for a while.
type storedClasses struct{ client.Reader }

func (r storedClasses) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	class, ok := obj.(*awsv1.EC2NodeClass)
	if !ok {
		return r.Reader.Get(ctx, key, obj, opts...)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(awsv1.GroupVersion().WithKind(awsv1.Kind))
	if err := r.Reader.Get(ctx, key, u, opts...); err != nil {
		return err
	}
	*class = awsv1.EC2NodeClass{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, class); err != nil {
		return fmt.Errorf("reading EC2NodeClass %s: %w", key.Name, err)
	}
	return nil
}
