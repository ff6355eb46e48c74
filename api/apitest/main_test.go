package apitest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// newLab returns an empty cluster that serves the API.
func newLab(t *testing.T) *labtest.Lab {
	t.Helper()
	l := labtest.New(t)
	l.InstallCRDs(crds.FS())
	return l
}

// strictClient returns a client of an empty cluster that serves the API. The client asks the server to refuse fields
// that it does not know, as kubectl does.
func strictClient(t *testing.T) client.Client {
	t.Helper()
	return client.WithFieldValidation(newLab(t).Client(scheme(t)), "Strict")
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme, v1alpha1.AddToScheme,
		awsv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatalf("building the scheme: %v", err)
		}
	}
	return s
}
