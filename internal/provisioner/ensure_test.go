package provisioner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
)

// tryToEnsure makes the NodePool of a Provisioner with a client that answers creations with an error, if there is one.
func tryToEnsure(t *testing.T, refusal error) (verdict, client.Client, string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if refusal != nil {
				return refusal
			}
			return c.Create(ctx, object, o...)
		}}).Build()
	var log strings.Builder
	logger := funcr.New(func(prefix, line string) { log.WriteString(prefix + line + "\n") }, funcr.Options{})
	by := owner{object: &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: "u"}},
		kind: v1alpha5.GroupVersion().WithKind(v1alpha5.Kind)}
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
	pool.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePool"))
	v, err := Options{Client: c, Events: &events{}}.ensure(ctrl.LoggerInto(t.Context(), logger), by, pool)
	if err != nil {
		t.Fatal(err)
	}
	return v, c, log.String()
}

// TestAnnotationsAreTheProvisioners: an annotation on the NodePool that its Provisioner does not have goes, and that is
// told: whoever has put tenon.sh/dry-run there believes the pool held.
func TestAnnotationsAreTheProvisioners(t *testing.T) {
	_, c, _ := tryToEnsure(t, nil)
	told := &events{}
	ensure := func(annotations map[string]string) map[string]string {
		t.Helper()
		by := owner{object: &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: "u"}},
			kind: v1alpha5.GroupVersion().WithKind(v1alpha5.Kind)}
		pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "old", Annotations: annotations}}
		pool.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePool"))
		if _, err := (Options{Client: c, Events: told}).ensure(t.Context(), by, pool); err != nil {
			t.Fatal(err)
		}
		var have v1.NodePool
		if err := c.Get(t.Context(), client.ObjectKey{Name: "old"}, &have); err != nil {
			t.Fatal(err)
		}
		return have.Annotations
	}
	annotate := func(key, value string) {
		t.Helper()
		pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
		if err := c.Patch(t.Context(), pool, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	const dryRun = "tenon.sh/dry-run"
	annotate(dryRun, "true")
	annotate("example.com/mine", "a")
	annotate("tenon.sh/v1beta1-only", "{}")
	if got := ensure(nil); len(got) != 1 || got["example.com/mine"] != "a" {
		t.Errorf("the annotations are %v", got)
	}
	want := "Provisioner old does not have tenon.sh/dry-run, so it was taken away here, too; annotate Provisioner " +
		"old instead"
	if !slices.Equal(told.texts, []string{want}) || told.reasons[0] != EventPutBack {
		t.Errorf("the events are %v: %q", told.reasons, told.texts)
	}
	for _, value := range []string{"true", "false"} { // a change of the Provisioner is nothing to tell of
		if got := ensure(map[string]string{dryRun: value}); got[dryRun] != value {
			t.Errorf("the annotations are %v", got)
		}
	}
	if len(told.texts) != 1 {
		t.Errorf("the events are %q", told.texts)
	}
}

// TestRefusalsAreLogged: who runs the controller reads what it may not do, not only the author of the Provisioner.
func TestRefusalsAreLogged(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Group: v1.Group, Resource: "nodepools"}, "old", nil)
	v, _, log := tryToEnsure(t, refusal)
	if v.ok || v.reason != ReasonRefused || !strings.Contains(v.message, "creating NodePool old") {
		t.Errorf("the verdict is %+v", v)
	}
	if !strings.Contains(log, "creating NodePool old") || !strings.Contains(log, "is forbidden") {
		t.Errorf("the log is %q", log)
	}
	if _, _, log := tryToEnsure(t, nil); log != "" {
		t.Errorf("without a refusal the log is %q", log)
	}
}

// TestOwnersAreNotBlocked: an owner reference that blocks needs a right on the owner where the admission plugin
// OwnerReferencesPermissionEnforcement is on.
func TestOwnersAreNotBlocked(t *testing.T) {
	_, c, _ := tryToEnsure(t, nil)
	var pool v1.NodePool
	if err := c.Get(t.Context(), client.ObjectKey{Name: "old"}, &pool); err != nil {
		t.Fatal(err)
	}
	if len(pool.OwnerReferences) != 1 || pool.OwnerReferences[0].BlockOwnerDeletion != nil ||
		!*pool.OwnerReferences[0].Controller {
		t.Errorf("the owners are %+v", pool.OwnerReferences)
	}
}

// TestOrphansAreNobodys: what a Provisioner has made outlives one that is deleted with --cascade=orphan, whatever the
// garbage collector knows of it. What others own stays theirs, and a Provisioner that is deleted as usual keeps what it
// owns.
func TestOrphansAreNobodys(t *testing.T) {
	for _, x := range []struct {
		name       string
		finalizers []string
		uid        types.UID
		owned      bool
	}{
		{"orphaned", []string{metav1.FinalizerOrphanDependents}, "u", false},
		{"deleted as usual", []string{"foregroundDeletion"}, "u", true},
		{"of another of the same name", []string{metav1.FinalizerOrphanDependents}, "other", true},
	} {
		_, c, _ := tryToEnsure(t, nil)
		gone := &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: x.uid, Finalizers: x.finalizers}}
		by := owner{object: gone, kind: v1alpha5.GroupVersion().WithKind(v1alpha5.Kind)}
		pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
		missing := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "missing"}}
		if _, err := (Options{Client: c}).letGo(t.Context(), by, missing, pool); err != nil {
			t.Fatal(err)
		}
		var have v1.NodePool
		if err := c.Get(t.Context(), client.ObjectKey{Name: "old"}, &have); err != nil {
			t.Fatal(err)
		}
		_, labelled := have.Labels[ProvisionerLabel]
		if owned := len(have.OwnerReferences) > 0; owned != x.owned || labelled != x.owned {
			t.Errorf("%s: owners %v, labels %v; is it owned: want %t", x.name, have.OwnerReferences,
				have.Labels, x.owned)
		}
	}
}
