package nodeclass

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// stamp puts the hash of the class on it.
//
// A class whose hash was computed in another way (by another version, or not at all) says nothing about its NodeClaims:
// they get the new hash first, as if they had been launched from the class as it is. So a new way to compute the hash
// never makes a node drift. A NodeClaim that has drifted already keeps its hash, and so its drift.
func (r *Reconciler) stamp(ctx context.Context, class *awsv1.EC2NodeClass) error {
	bundle, err := r.CABundle(ctx)
	if err != nil {
		return fmt.Errorf("reading the cluster's certificate for the hash of EC2NodeClass %s: %w", class.Name, err)
	}
	hash, err := class.Hash(bundle)
	if err != nil {
		return err
	}
	if class.Annotations[awsv1.HashVersionAnnotationKey] != awsv1.HashVersion {
		if err := r.restamp(ctx, class, hash); err != nil {
			return err
		}
	}
	return annotate(ctx, r.Client, class, map[string]string{
		awsv1.HashAnnotationKey: hash, awsv1.HashVersionAnnotationKey: awsv1.HashVersion})
}

func (r *Reconciler) restamp(ctx context.Context, class *awsv1.EC2NodeClass, hash string) error {
	claims, err := listClaims(ctx, r.Client, class.Name)
	if err != nil {
		return err
	}
	var failed []error
	for _, claim := range claims {
		if claim.GetAnnotations()[awsv1.HashVersionAnnotationKey] == awsv1.HashVersion {
			continue
		}
		want := map[string]string{awsv1.HashVersionAnnotationKey: awsv1.HashVersion}
		if !drifted(claim) {
			want[awsv1.HashAnnotationKey] = hash
		}
		failed = append(failed, client.IgnoreNotFound(annotate(ctx, r.Client, claim.DeepCopy(), want)))
	}
	return errors.Join(failed...)
}
