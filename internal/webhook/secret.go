package webhook

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys of the Secret.
const (
	bundleKey       = "ca.crt"
	authorityKeyKey = "ca.key"
	certificateKey  = corev1.TLSCertKey
	privateKeyKey   = corev1.TLSPrivateKeyKey
)

// store keeps the material in a Secret, which all replicas share.
type store struct {
	client client.Client
	secret client.ObjectKey
	names  []string
	now    func() time.Time
}

// tries is how often a replica that was overtaken by another looks again.
const tries = 5

// current returns the material that all replicas serve with, after renewing what is due. Whoever comes first writes;
// the others take what is there then.
func (s *store) current(ctx context.Context) (material, error) {
	var err error
	for range tries {
		var out material
		out, err = s.try(ctx)
		if err == nil {
			return out, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return material{}, fmt.Errorf("keeping the webhook's certificate in Secret %s: %w", s.secret, err)
}

func (s *store) try(ctx context.Context) (material, error) {
	var secret corev1.Secret
	err := s.client.Get(ctx, s.secret, &secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return material{}, err
	}
	have := material{
		bundle: secret.Data[bundleKey], authorityKey: secret.Data[authorityKeyKey],
		certificate: secret.Data[certificateKey], key: secret.Data[privateKeyKey],
	}
	want, err := renew(have, s.now(), s.names)
	if err != nil || want.equal(have) {
		return want, err
	}
	read := secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[bundleKey], secret.Data[authorityKeyKey] = want.bundle, want.authorityKey
	secret.Data[certificateKey], secret.Data[privateKeyKey] = want.certificate, want.key
	if missing {
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: s.secret.Namespace, Name: s.secret.Name}
		err := s.client.Create(ctx, &secret)
		if apierrors.IsForbidden(err) {
			return want, fmt.Errorf("it is not there, and the controller may not create it; kubectl create secret "+
				"generic %s "+
				"--namespace %s makes one, as the chart does: %w", s.secret.Name, s.secret.Namespace, err)
		}
		return want, err
	}
	return want, s.client.Patch(ctx, &secret, client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{}))
}
