package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// page is how many objects are listed at a time.
	page = 100
	// pace is the least time between two rewrites: 20 a second are no burden for an API server.
	pace = 50 * time.Millisecond
)

// Migrate has every object stored as v1 that an older version of the API may have written, and then says so in the
// CustomResourceDefinitions. It goes on until that is done or the context ends. Begun again after a restart it costs only the requests:
// the API server writes nothing for an object that is stored as it should be.
func (w *Webhook) Migrate(ctx context.Context) error {
	for {
		err := w.migrateAll(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		w.log.Error(err, "objects of older versions could not all be stored anew; trying again")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(looks):
		}
	}
}

func (w *Webhook) migrateAll(ctx context.Context) error {
	for _, name := range Definitions() {
		var definition apiextensionsv1.CustomResourceDefinition
		err := w.client.Get(ctx, client.ObjectKey{Name: name}, &definition)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = migrate(ctx, w.client, &definition, w.log.WithValues("definition", name))
		}
		if err != nil {
			return fmt.Errorf("storing the objects of %s anew: %w", name, err)
		}
	}
	return nil
}

// migrate has the objects of one definition stored anew, if there may be any of another version.
func migrate(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition, log logr.Logger) error {
	stored := storageVersion(definition)
	if slices.Equal(definition.Status.StoredVersions, []string{stored}) {
		return nil
	}
	if clientConfig(definition) == nil { // the API server would only change the name of the version, and drop what it does not know
		return fmt.Errorf("no webhook converts CustomResourceDefinition %s yet", definition.Name)
	}
	log.Info("storing objects of older versions anew", "storedVersions", definition.Status.StoredVersions, "version", stored)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: definition.Spec.Group, Version: stored, Kind: definition.Spec.Names.ListKind})
	done := 0
	for more := true; more; more = list.Continue != "" {
		if err := c.List(ctx, list, client.Limit(page), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("listing them: %w", err)
		}
		for i := range list.Items {
			if err := rewrite(ctx, c, definition, stored, list.Items[i].Name); err != nil {
				return err
			}
			done++
		}
		log.Info("stored objects anew", "objects", done)
	}
	return dropVersions(ctx, c, definition, stored)
}

func storageVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range definition.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return "" // the API server sees to it that there is one
}

// rewrite changes nothing in an object, which makes the API server write it in the version that is stored.
func rewrite(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition, version, name string) error {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: definition.Spec.Group, Version: version, Kind: definition.Spec.Names.Kind})
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}"))); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("rewriting %s: %w", name, err)
	}
	timer := time.NewTimer(pace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// dropVersions says that only one version is stored, unless the definition has changed meanwhile.
func dropVersions(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition, stored string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": definition.ResourceVersion},
		"status":   map[string]any{"storedVersions": []string{stored}},
	})
	if err != nil {
		return err
	}
	if err := c.Status().Patch(ctx, definition, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("saying that only %s is stored: %w", stored, err)
	}
	return nil
}
