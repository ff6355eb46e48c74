package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	page = 500
	// pace is the least time between two rewrites: 20 a second are no burden for an API server.
	pace = 50 * time.Millisecond
	// tellEach is after how many objects the log tells how far it is.
	tellEach = 100
	// migrateAtLeast is how often at least it is tried again while some objects can't be rewritten.
	migrateAtLeast = time.Hour
)

// Migrate has every object stored as v1 that an older version of the API may have written, and then says so in the
// CustomResourceDefinitions. It goes on until the context ends, because definitions with older objects may be applied
// later. Begun again after a restart it costs only the requests: the API server writes nothing for an object that is
// stored as it should be.
func (w *Webhook) Migrate(ctx context.Context) error {
	m := &migration{client: w.client, log: w.log, pace: pace, done: map[string]progress{}}
	trouble, again := "", looks
	for {
		err := m.all(ctx)
		switch {
		case err == nil:
			trouble, again = "", looks
		case ctx.Err() != nil:
			return nil
		default:
			if err.Error() != trouble {
				w.log.Error(err, "objects of older versions could not all be stored anew; trying again")
			}
			trouble, again = err.Error(), min(2*again, migrateAtLeast)
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-w.applied: // a definition has changed
			timer.Stop()
		case <-timer.C:
		}
	}
}

// migration has objects stored anew.
type migration struct {
	client client.Client
	log    logr.Logger
	// pace is the least time between two rewrites.
	pace time.Duration
	// done is, by definition, how far it is.
	done map[string]progress
}

// progress are the objects that need no second try: whatever has written them since has stored them as v1, unless the
// definition has changed.
type progress struct {
	generation int64
	objects    map[types.UID]bool
}

// all goes through the definitions. One that makes trouble keeps no other from its turn.
func (m *migration) all(ctx context.Context) error {
	var troubles []error
	for _, name := range Definitions() {
		var definition apiextensionsv1.CustomResourceDefinition
		err := m.client.Get(ctx, client.ObjectKey{Name: name}, &definition)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = m.one(ctx, &definition)
		}
		if err != nil {
			troubles = append(troubles, fmt.Errorf("storing the objects of %s anew: %w", name, err))
		}
	}
	return errors.Join(troubles...)
}

// one has the objects of one definition stored anew, if there may be any of another version.
func (m *migration) one(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) (err error) {
	defer contained(m.log, "storing objects anew", &err)
	stored := storageVersion(definition)
	if slices.Equal(definition.Status.StoredVersions, []string{stored}) {
		delete(m.done, definition.Name)
		return nil
	}
	if stored != newerVersion { // these are not our definitions
		return nil
	}
	if clientConfig(definition) == nil {
		// the API server would only change the name of the version, and drop what it does not know
		return fmt.Errorf("no webhook converts CustomResourceDefinition %s yet", definition.Name)
	}
	log := m.log.WithValues("definition", definition.Name)
	names, err := m.list(ctx, definition, stored)
	if err != nil {
		return err
	}
	done, begun := m.done[definition.Name]
	if !begun || done.generation != definition.Generation {
		done = progress{generation: definition.Generation, objects: map[types.UID]bool{}}
		m.done[definition.Name] = done
		log.Info("storing objects of older versions anew", "storedVersions", definition.Status.StoredVersions,
			"version", stored, "objects", len(names))
	}
	if err := m.rewriteAll(ctx, definition, stored, names, done.objects, log); err != nil {
		return err
	}
	log.Info("stored objects anew", "objects", len(done.objects))
	return dropVersions(ctx, m.client, definition, stored)
}

// object is an object's name, and which object of that name it is.
type object struct {
	name string
	uid  types.UID
}

// list returns all objects before the first is rewritten: to rewrite some thousands takes longer than the API server
// keeps the rest of a list.
func (m *migration) list(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition,
	version string) ([]object, error) {
	var out []object
	list := &metav1.PartialObjectMetadataList{}
	for more := true; more; more = list.Continue != "" {
		from := list.Continue
		list = &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: definition.Spec.Group, Version: version,
			Kind: definition.Spec.Names.ListKind})
		if err := m.client.List(ctx, list, client.Limit(page), client.Continue(from)); err != nil {
			return nil, fmt.Errorf("listing them: %w", err)
		}
		for i := range list.Items {
			out = append(out, object{list.Items[i].Name, list.Items[i].UID})
		}
	}
	return out, nil
}

// rewriteAll rewrites the objects that are not done yet. One that can't be rewritten keeps no other from its turn; the
// error counts them and names the first.
func (m *migration) rewriteAll(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition,
	version string, all []object, done map[types.UID]bool, log logr.Logger) error {
	var first error
	failed, before := 0, len(done)
	for _, o := range all {
		if done[o.uid] {
			continue
		}
		err := m.rewrite(ctx, definition, version, o.name)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			done[o.uid] = true
			if count := len(done) - before; count%tellEach == 0 {
				log.Info("stored objects anew", "objects", len(done), "of", len(all))
			}
		default:
			failed++
			first = cmp.Or(first, err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d can't be, and the others are; the first one: %w", failed, len(all), first)
	}
	return nil
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
func (m *migration) rewrite(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition,
	version, name string) error {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: definition.Spec.Group, Version: version,
		Kind: definition.Spec.Names.Kind})
	err := m.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}")))
	timer := time.NewTimer(m.pace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("rewriting %s %s: %w", definition.Spec.Names.Kind, name, err)
	}
	return nil
}

// dropVersions says that only one version is stored, unless the definition has changed meanwhile.
func dropVersions(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition,
	stored string) error {
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
