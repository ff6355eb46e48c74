package actuate

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tenon-sh/tenon/internal/command"
)

// mustBe answers as the API server does if a request is about another pod than the one that is there, or does not say
// about which.
func mustBe(have types.UID, asked *metav1.Preconditions) error {
	if asked == nil || asked.UID == nil {
		return fmt.Errorf("the request would have hit any pod of the name")
	}
	if *asked.UID != have {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", fmt.Errorf("the UID is %s, not %s",
			have, *asked.UID))
	}
	return nil
}

// A StatefulSet makes its pods anew with the same name. The one that took the place of the pod that was to go stays.
func TestEvictionSparesANamesake(t *testing.T) {
	for _, now := range []bool{false, true} {
		for _, uid := range []string{"u", "old"} {
			done := 0
			s := newStage(t, interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, _ client.Client, sub string, _, body client.Object,
					_ ...client.SubResourceCreateOption) error {
					eviction, ok := body.(*policyv1.Eviction)
					if !ok || sub != "eviction" || eviction.DeleteOptions == nil {
						return fmt.Errorf("%s of %T is no eviction with options", sub, body)
					}
					err := mustBe("u", eviction.DeleteOptions.Preconditions)
					if err == nil {
						done++
					}
					return err
				},
				Delete: func(_ context.Context, _ client.WithWatch, _ client.Object,
					opts ...client.DeleteOption) error {
					var o client.DeleteOptions
					o.ApplyOptions(opts)
					err := mustBe("u", o.Preconditions)
					if err == nil {
						done++
					}
					return err
				},
			}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}})
			out := s.do(command.Evict{Pod: "ns/p", UID: uid, Namespace: "ns", Name: "p", Delete: now,
				Grace: time.Second})
			if want := map[string]int{"u": 1}[uid]; out.Err != nil || done != want {
				t.Errorf("at once %v, for the pod with UID %s: %d pods were asked to go (%v), want %d", now, uid, done,
					out.Err, want)
			}
		}
	}
}
