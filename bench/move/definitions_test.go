package move

import (
	"fmt"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/internal/report"
)

// definitions are those that both programs have.
func definitions() []string {
	return []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh"}
}

// upgradeDefinitions replaces Karpenter's definitions with Tenon's in place, and says that they may still store objects
// of v1beta1, as those of a cluster do that has come a long way.
func (w *world) upgradeDefinitions() {
	w.Helper()
	for _, crds := range w.who[report.Tenon].CRDs {
		w.lab.InstallCRDs(os.DirFS(crds))
	}
	for _, name := range definitions() {
		object := &apiextensionsv1.CustomResourceDefinition{}
		object.Name = name
		patch := client.RawPatch("application/merge-patch+json",
			[]byte(`{"status":{"storedVersions":["v1beta1","v1"]}}`))
		w.must(w.c.Status().Patch(w.Context(), object, patch))
	}
}

// migrated says which definition does not say yet that all its objects are stored in v1.
func (w *world) migrated() string {
	for _, name := range definitions() {
		object := &apiextensionsv1.CustomResourceDefinition{}
		w.must(w.c.Get(w.Context(), client.ObjectKey{Name: name}, object))
		if !slices.Equal(object.Status.StoredVersions, []string{"v1"}) {
			return fmt.Sprintf("%s stores %s", name, strings.Join(object.Status.StoredVersions, ", "))
		}
	}
	return ""
}

// spoilStamps gives some NodeClaims a hash that was computed in another way, as an older Karpenter did, and takes it
// from another.
func (w *world) spoilStamps() {
	w.Helper()
	for i, c := range list(w, &v1.NodeClaimList{}).Items[:5] {
		annotations := fmt.Sprintf(`{%q:"17",%q:"v2"}`, v1.NodePoolHashAnnotationKey,
			v1.NodePoolHashVersionAnnotationKey)
		if i == 0 {
			annotations = fmt.Sprintf(`{%q:null,%q:null}`, v1.NodePoolHashAnnotationKey,
				v1.NodePoolHashVersionAnnotationKey)
		}
		w.must(w.c.Patch(w.Context(), &c, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":`+annotations+`}}`))))
	}
}

// stamped says which NodeClaim lacks the hash of its pool.
func (w *world) stamped() string {
	pool := &v1.NodePool{}
	w.must(w.c.Get(w.Context(), client.ObjectKey{Name: "default"}, pool))
	want := pool.Annotations[v1.NodePoolHashAnnotationKey]
	if want == "" || pool.Annotations[v1.NodePoolHashVersionAnnotationKey] != v1.NodePoolHashVersion {
		return fmt.Sprintf("the pool has the annotations %v", pool.Annotations)
	}
	for _, c := range list(w, &v1.NodeClaimList{}).Items {
		if c.Annotations[v1.NodePoolHashAnnotationKey] != want ||
			c.Annotations[v1.NodePoolHashVersionAnnotationKey] != v1.NodePoolHashVersion {
			return fmt.Sprintf("NodeClaim %s has the annotations %v, and the pool's hash is %s", c.Name,
				c.Annotations, want)
		}
	}
	return ""
}
