package aws

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// classReader reads EC2NodeClasses.
type classReader struct{ client client.Reader }

// find returns the class whether or not it can be used; nil if there is none of the name.
func (r classReader) find(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	if name == "" {
		return nil, nil
	}
	class := &awsv1.EC2NodeClass{}
	err := r.client.Get(ctx, types.NamespacedName{Name: name}, class)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting EC2NodeClass %s: %w", name, err)
	}
	return class, nil
}

// has tells whether there is a class of the name, or may be.
func (r classReader) has(ctx context.Context, name string) bool {
	class, err := r.find(ctx, name)
	return class != nil || err != nil
}

// ready returns the class if it can be used.
func (r classReader) ready(ctx context.Context, ref *v1.NodeClassReference) (*awsv1.EC2NodeClass, error) {
	if ref == nil || ref.Group != awsv1.Group || ref.Kind != awsv1.Kind {
		return nil, &cloudprovider.NotReadyError{Message: fmt.Sprintf(
			"spec.nodeClassRef must have group %s and kind %s", awsv1.Group, awsv1.Kind)}
	}
	class, err := r.find(ctx, ref.Name)
	if err != nil {
		return nil, err
	}
	if class == nil {
		return nil, &cloudprovider.NotReadyError{NodeClass: ref.Name, Message: "it does not exist; create it or " +
			"change spec.nodeClassRef.name"}
	}
	if !class.DeletionTimestamp.IsZero() {
		return nil, &cloudprovider.NotReadyError{NodeClass: ref.Name, Message: "it is being deleted"}
	}
	ready := meta.FindStatusCondition(class.Status.Conditions, v1.ConditionTypeReady)
	if ready == nil {
		return nil, &cloudprovider.NotReadyError{NodeClass: ref.Name, Message: "it has no Ready condition yet"}
	}
	if ready.ObservedGeneration != class.Generation {
		return nil, &cloudprovider.NotReadyError{NodeClass: ref.Name, Message: "it has changed and is being looked at"}
	}
	if ready.Status != metav1.ConditionTrue {
		return nil, &cloudprovider.NotReadyError{NodeClass: ref.Name, Message: ready.Message}
	}
	return class, nil
}

// InstanceTypes implements cloudprovider.Provider.
func (p *Provider) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	class, err := p.classes.ready(ctx, pool.Spec.Template.Spec.NodeClassRef)
	if err != nil {
		return nil, err
	}
	c, err := p.catalog.ForClass(ctx, class)
	if err != nil {
		return nil, err
	}
	return c.Types, nil
}
