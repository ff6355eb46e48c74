package labtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// swept are the built-in kinds that tests create, in the order in which they
// go: first what refuses deletions, then what makes other objects, then those.
func swept() []schema.GroupVersionResource {
	resource := func(group, version string, names ...string) []schema.GroupVersionResource {
		var out []schema.GroupVersionResource
		for _, name := range names {
			out = append(out, schema.GroupVersionResource{Group: group, Version: version, Resource: name})
		}
		return out
	}
	return slices.Concat(
		resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
			"mutatingwebhookconfigurations",
			"validatingadmissionpolicybindings", "validatingadmissionpolicies"),
		resource("batch", "v1", "cronjobs", "jobs"),
		resource("apps", "v1", "deployments", "statefulsets", "daemonsets", "replicasets"),
		resource("", "v1", "replicationcontrollers"),
		resource("policy", "v1", "poddisruptionbudgets"),
		resource("", "v1", "pods", "persistentvolumeclaims", "persistentvolumes", "services", "limitranges",
			"resourcequotas"),
		resource("storage.k8s.io", "v1", "storageclasses", "volumeattachments", "csinodes", "csidrivers"),
		resource("scheduling.k8s.io", "v1", "priorityclasses"),
		resource("node.k8s.io", "v1", "runtimeclasses"),
		resource("", "v1", "nodes"),
		resource("coordination.k8s.io", "v1", "leases"),
		resource("events.k8s.io", "v1", "events"),
	)
}

// partOf with the value partOfLab marks the storage classes and drivers that every lab has.
const partOf, partOfLab = "app.kubernetes.io/part-of", "tenon-lab"

// survives tells which objects of the swept kinds belong to the control plane.
func survives(resource schema.GroupVersionResource, object *metav1.PartialObjectMetadata) bool {
	switch resource.Resource {
	case "priorityclasses":
		return strings.HasPrefix(object.Name, "system-")
	case "services":
		return object.Namespace == "default" && object.Name == "kubernetes"
	case "leases":
		// A lease of an election that ended with its test would make the next
		// candidate wait; those of API servers are not elections.
		return strings.HasPrefix(object.Name, "apiserver-")
	case "storageclasses", "csidrivers":
		return object.Labels[partOf] == partOfLab
	case "nodes":
		return false
	}
	return isSystem(object.Namespace)
}

// clean removes what tests have left, again and again until a look finds
// nothing, because controllers may still be making things.
func clean(ctx context.Context, config *rest.Config) error {
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	custom, err := customResources(ctx, config)
	if err != nil {
		return err
	}
	s := sweeper{objects: objects, resources: slices.Concat(custom, swept())}
	for {
		left, err := s.sweep(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still there after %s: %s", cleanPatience, strings.Join(first(left, 10), ", "))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func first(names []string, n int) []string {
	if len(names) <= n {
		return names
	}
	return append(slices.Clone(names[:n]), fmt.Sprintf("and %d more", len(names)-n))
}

// customResources lists the kinds that CRDs define.
func customResources(ctx context.Context, config *rest.Config) ([]schema.GroupVersionResource, error) {
	c, err := apiextensions.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	definitions, err := c.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list CRDs: %w", err)
	}
	var out []schema.GroupVersionResource
	for _, definition := range definitions.Items {
		if !established(&definition) {
			continue
		}
		for _, version := range definition.Spec.Versions {
			if version.Served && version.Storage {
				out = append(out, schema.GroupVersionResource{
					Group: definition.Spec.Group, Version: version.Name, Resource: definition.Spec.Names.Plural})
			}
		}
	}
	return out, nil
}

func established(definition *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

type sweeper struct {
	objects   metadata.Interface
	resources []schema.GroupVersionResource
}

// sweep deletes everything it finds once and returns what it found.
func (s sweeper) sweep(ctx context.Context) ([]string, error) {
	var found []string
	for _, resource := range s.resources {
		names, err := s.sweepResource(ctx, resource)
		if err != nil {
			return found, err
		}
		found = append(found, names...)
	}
	return found, s.dropNamespaces(ctx)
}

func (s sweeper) sweepResource(ctx context.Context, resource schema.GroupVersionResource) ([]string, error) {
	list, err := s.objects.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	var found []string
	for i := range list.Items {
		object := &list.Items[i]
		if survives(resource, object) {
			continue
		}
		name := strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
		found = append(found, resource.Resource+" "+name)
		if err := s.remove(ctx, resource, object); err != nil {
			return found, fmt.Errorf("delete %s %s: %w", resource.Resource, name, err)
		}
	}
	return found, nil
}

// remove takes an object's finalizers, whose controllers are gone, and deletes it.
func (s sweeper) remove(ctx context.Context, resource schema.GroupVersionResource,
	object *metav1.PartialObjectMetadata) error {
	objects := s.objects.Resource(resource).Namespace(object.Namespace)
	var patchErr error
	if len(object.Finalizers) > 0 {
		_, patchErr = objects.Patch(ctx, object.Name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
	now := int64(0)
	background := metav1.DeletePropagationBackground
	deleteErr := objects.Delete(ctx, object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		PropagationPolicy:  &background,
		Preconditions:      &metav1.Preconditions{UID: &object.UID},
	})
	return errors.Join(passing(patchErr), passing(deleteErr))
}

// passing drops errors that the next look settles.
func passing(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// dropNamespaces lets the namespaces of earlier tests go. Nobody waits for it:
// they are empty already and no test uses their names again.
func (s sweeper) dropNamespaces(ctx context.Context) error {
	namespaces := s.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	list, err := namespaces.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	for _, namespace := range list.Items {
		if isSystem(namespace.Name) || namespace.Name == "default" || namespace.DeletionTimestamp != nil {
			continue
		}
		if err := passing(namespaces.Delete(ctx, namespace.Name, metav1.DeleteOptions{})); err != nil {
			return fmt.Errorf("delete namespace %s: %w", namespace.Name, err)
		}
	}
	return nil
}
