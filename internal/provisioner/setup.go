package provisioner

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/api/aws/v1alpha1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	"github.com/tenon-sh/tenon/internal/translate"
)

// Setup makes the manager keep what is made from Provisioners and, on AWS, from AWSNodeTemplates. A cluster that does
// not know these kinds is kept without them: then it returns their names.
func Setup(mgr ctrl.Manager, o Options) (unknown []string, err error) {
	serves := func(gvk schema.GroupVersionKind) (bool, error) {
		_, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			unknown = append(unknown, gvk.Kind)
			return false, nil
		}
		return err == nil, err
	}
	provisioners, err := serves(v1alpha5.GroupVersion().WithKind(v1alpha5.Kind))
	if err != nil {
		return nil, fmt.Errorf("asking whether the cluster serves Provisioners: %w", err)
	}
	if o.Target.Cloud == translate.AWS {
		if o.Templates, err = serves(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind)); err != nil {
			return nil, fmt.Errorf("asking whether the cluster serves AWSNodeTemplates: %w", err)
		}
	}
	if provisioners {
		if err := setupProvisioners(mgr, o); err != nil {
			return nil, fmt.Errorf("setting up the Provisioner controller: %w", err)
		}
	}
	if o.Templates {
		if err := setupTemplates(mgr, o); err != nil {
			return nil, fmt.Errorf("setting up the AWSNodeTemplate controller: %w", err)
		}
	}
	return unknown, nil
}

// stored is an object of a kind as it is stored.
func stored(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

func setupProvisioners(mgr ctrl.Manager, o Options) error {
	build := ctrl.NewControllerManagedBy(mgr).
		Named("provisioner").
		For(stored(v1alpha5.GroupVersion().WithKind(v1alpha5.Kind))).
		// A pool has the name of its Provisioner, whoever made it.
		Watches(stored(v1.GroupVersion().WithKind("NodePool")), handler.EnqueueRequestsFromMapFunc(sameName)).
		Watches(blankClass(o.Target.Cloud), handler.EnqueueRequestsFromMapFunc(ownedBy(v1alpha5.Kind)))
	if o.Templates {
		build = build.Watches(stored(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind)),
			handler.EnqueueRequestsFromMapFunc(users(mgr.GetClient())))
	}
	return build.Complete(&Reconciler{Options: o})
}

func setupTemplates(mgr ctrl.Manager, o Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("awsnodetemplate").
		For(stored(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind))).
		Watches(&awsv1.EC2NodeClass{}, handler.EnqueueRequestsFromMapFunc(sameName)).
		Complete(&TemplateReconciler{Options: o})
}

func sameName(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetName()}}}
}

// ownedBy finds the owner of a kind.
func ownedBy(kind string) handler.MapFunc {
	return func(_ context.Context, object client.Object) []reconcile.Request {
		if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == kind {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: owner.Name}}}
		}
		return nil
	}
}

// users finds the Provisioners that refer to an AWSNodeTemplate.
func users(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha5.GroupVersion().WithKind(v1alpha5.Kind + "List"))
		if err := c.List(ctx, list); err != nil {
			return nil // the cache has it or will bring it; then each Provisioner is looked at anyway
		}
		var out []reconcile.Request
		for i := range list.Items {
			if name, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "providerRef",
				"name"); name == object.GetName() {
				out = append(out,
					reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].GetName()}})
			}
		}
		return out
	}
}
