package apitest

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// apiCase is one story with the API server: create an object, perhaps change it, and look at what was said and what is
// stored. Each text is YAML that is merged over the one before; null removes a field, a list replaces a list.
type apiCase struct {
	name string
	// create is merged over the base object of the table.
	create string
	// update, if there is one, is merged over what was stored.
	update string
	// refused is a part of the error that the last step gives; empty means that it succeeds.
	refused string
	// stored must be contained in what is stored in the end.
	stored string
}

// run plays the cases, each on an object of its own name.
func run(t *testing.T, base string, cases []apiCase) {
	t.Helper()
	c := strictClient(t)
	for i, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: merge(parse(t, base), parse(t, tc.create))}
			object.SetName(fmt.Sprintf("case-%d", i))
			play(t, c, object, tc)
		})
	}
}

func play(t *testing.T, c client.Client, object *unstructured.Unstructured, tc apiCase) {
	t.Helper()
	ctx := t.Context()
	err := c.Create(ctx, object)
	if err == nil {
		// The test's own context is over when the cleanup runs.
		t.Cleanup(func() { remove(t, c, object) })
	}
	if tc.update != "" {
		if err != nil {
			t.Fatalf("creating the object to update: %v", err)
		}
		object.Object = merge(object.Object, parse(t, tc.update))
		err = c.Update(ctx, object)
	}
	if tc.refused != "" {
		wantRefusal(t, err, tc.refused)
		return
	}
	if err != nil {
		t.Fatalf("the API server refused: %v", err)
	}
	wantStored(t, c, object, tc.stored)
}

func remove(t *testing.T, c client.Client, object client.Object) {
	if err := client.IgnoreNotFound(c.Delete(context.Background(), object)); err != nil {
		t.Errorf("deleting %s: %v", object.GetName(), err)
	}
}

func wantRefusal(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil {
		t.Fatalf("the API server accepted it; want an error with %q", part)
	}
	if !strings.Contains(err.Error(), part) {
		t.Fatalf("the API server said %q; want an error with %q", err, part)
	}
}

func wantStored(t *testing.T, c client.Client, object *unstructured.Unstructured, want string) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatalf("reading the object back: %v", err)
	}
	if missing := lacks("", object.Object, parse(t, want)); missing != "" {
		t.Errorf("stored object: %s", missing)
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatalf("reading the case's YAML: %v\n%s", err, text)
	}
	if out == nil {
		out = map[string]any{}
	}
	return out
}

// merge returns base with the patch laid over it, as a JSON merge patch is.
func merge(base, patch map[string]any) map[string]any {
	for key, value := range patch {
		under, ok := value.(map[string]any)
		if value == nil {
			delete(base, key)
			continue
		}
		if existing, isMap := base[key].(map[string]any); ok && isMap {
			base[key] = merge(existing, under)
			continue
		}
		base[key] = value
	}
	return base
}

// lacks says which part of want is not in have; empty if all of it is. null means that the field must be absent.
func lacks(path string, have, want any) string {
	wanted, ok := want.(map[string]any)
	if !ok {
		if fmt.Sprint(have) == fmt.Sprint(want) || reflect.DeepEqual(have, want) {
			return ""
		}
		return fmt.Sprintf("%s is %v, want %v", path, have, want)
	}
	fields, _ := have.(map[string]any)
	for key, value := range wanted {
		got, present := fields[key]
		if value == nil {
			if present {
				return fmt.Sprintf("%s.%s is %v, want it absent", path, key, got)
			}
			continue
		}
		if missing := lacks(path+"."+key, got, value); missing != "" {
			return missing
		}
	}
	return ""
}
