package hostile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/catalog"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/hostile"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/validate"
)

// sold is what every pool can buy.
type sold []*cloudprovider.InstanceType

func (s sold) InstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return s, nil
}

// newBook is a cluster with one pool that sells what EC2 does, and the ordinary pods.
func newBook(t testing.TB, ordinary int) *ingest.Book {
	t.Helper()
	class := cluster.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	book := ingest.New(func() time.Time { return now }, validate.Labels{}, []cluster.ClassRef{class})
	book.SetNodeClass(class, cluster.NodeClassState{Ready: true, Generation: 1})
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool"}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: class.Group, Kind: class.Kind,
		Name: class.Name}
	book.SetPool(pool)
	stock(t, book)
	book.Snapshot()
	for i := range ordinary {
		book.SetPod(ordinaryPod(i))
	}
	return book
}

// stock fetches the catalogs of pools that have none.
func stock(t testing.TB, book *ingest.Book) {
	t.Helper()
	types, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	book.FetchCatalogs(t.Context(), sold(types))
}

func ordinaryPod(i int) *corev1.Pod {
	p := hostile.Pod(fmt.Sprint("ordinary-", i))
	p.Namespace, p.UID, p.Labels = "default", types.UID(fmt.Sprint("ordinary-", i)), map[string]string{"app": "web"}
	return p
}

// feed delivers an object as the watch would.
func feed(book *ingest.Book, object client.Object) {
	switch o := object.(type) {
	case *corev1.Pod:
		book.SetPod(o)
	case *corev1.PersistentVolumeClaim:
		book.SetVolumeClaim(o)
	case *corev1.PersistentVolume:
		book.SetVolume(o)
	case *storagev1.StorageClass:
		book.SetStorageClass(o)
	case *corev1.Namespace:
		book.SetNamespace(o)
	case *appsv1.DaemonSet:
		book.SetDaemon(o)
	case *policyv1.PodDisruptionBudget:
		book.SetPDB(o)
	case *v1.NodePool:
		book.SetPool(o)
	case *v1.NodeClaim:
		book.SetClaim(o)
	case *corev1.Node:
		book.SetNode(o)
	default:
		panic(fmt.Sprintf("no handler for %T", object))
	}
}

func policy() plan.Policy { return plan.Policy{Placement: plan.PlaceByNomination} }
