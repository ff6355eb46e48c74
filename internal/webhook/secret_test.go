package webhook

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestNoRightToCreateTheSecret: an empty Secret is enough, and without one the error says how to make it.
func TestNoRightToCreateTheSecret(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "mine-cert", nil)
		}}).Build()
	s := &store{client: c, secret: client.ObjectKey{Namespace: "karpenter", Name: "mine-cert"},
		names: []string{"mine.karpenter.svc"}, now: time.Now}
	const want = "kubectl create secret generic mine-cert --namespace karpenter"
	if _, err := s.current(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v", err)
	}
	empty := &corev1.Secret{}
	empty.Namespace, empty.Name = "karpenter", "mine-cert"
	s.client = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(empty).Build()
	made, err := s.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.current(t.Context()); err != nil || !again.equal(made) {
		t.Errorf("the Secret does not keep what was made: %v", err)
	}
}
