package awscloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/internal/validate"
	"github.com/tenon-sh/tenon/operator"
)

// A pool may require every label that some instance type carries, even while no EC2NodeClass is there that could buy
// one.
func TestLabelsOfEveryInstanceTypeAreKnown(t *testing.T) {
	known := validate.Labels{WellKnown: map[string]bool{}, RestrictedDomains: labels().RestrictedDomains}
	for _, key := range labels().WellKnown {
		known.WellKnown[key] = true
	}
	infos, _, err := catalog.Region("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.AMIFamily = new(awsv1.AMIFamilyAL2023)
	shapes := machine.NewShapes(machine.Settings{Region: "us-east-1"}, machine.NewMemory(time.Now))
	seen := map[string]bool{}
	for i := range infos {
		shape, err := shapes.Shape(&infos[i], class)
		if err != nil || shape == nil {
			continue // a type that the class can't use
		}
		for key := range shape.Labels {
			seen[key] = true
			if !known.IsWellKnown(key) || known.IsRestricted(key) {
				t.Errorf("%s carries %s, which pools may not require", shape.Name, key)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d labels were seen", len(seen))
	}
	for key, restricted := range map[string]bool{
		awsv1.Group + "/own": true, awsv1.InstanceFamilyLabelKey: false, awsv1.ZoneIDLabelKey: false,
		v1.CapacityTypeLabelKey: false, "example.com/own": false,
	} {
		if known.IsRestricted(key) != restricted {
			t.Errorf("%s is restricted: %v", key, !restricted)
		}
	}
}

// spyClient notes the request that arrives.
type spyClient struct{ got *http.Request }

func (s *spyClient) Do(r *http.Request) (*http.Response, error) {
	s.got = r
	return nil, io.EOF
}

// closable is a body that can write itself, as the SDK's can.
type closable struct{ *strings.Reader }

func (closable) Close() error { return nil }

func TestBodiesArePlain(t *testing.T) {
	spy := &spyClient{}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/",
		closable{strings.NewReader("text")})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = plainBodies{spy}.Do(r)
	if _, writes := spy.got.Body.(io.WriterTo); writes {
		t.Error("the body can still write itself")
	}
	if text, err := io.ReadAll(spy.got.Body); err != nil || string(text) != "text" {
		t.Errorf("the body reads %q, %v", text, err)
	}
}

// recorder is a manager that remembers what it is to run.
type recorder struct {
	manager.Manager
	added []string
}

func (r *recorder) Add(what manager.Runnable) error {
	r.added = append(r.added, fmt.Sprintf("%T", what))
	return r.Manager.Add(what)
}

// GetAPIReader knows the namespace kube-system and nothing else.
func (r *recorder) GetAPIReader() client.Reader { return systemOnly{} }

type systemOnly struct{ client.Reader }

func (systemOnly) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if key.Name != "kube-system" {
		return fmt.Errorf("%s is read before the manager is started", key)
	}
	obj.SetUID("identity")
	return nil
}

// noEvents drops events.
type noEvents struct{}

func (noEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// What works behind the provider runs: nothing of it can be missing without somebody noticing late.
func TestTheManagerRunsWhatAWSNeeds(t *testing.T) {
	for name, value := range map[string]string{"AWS_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "id",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	cloud := New()
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cloud.Settings.Register(f)
	if err := errors.Join(f.Parse([]string{"--cluster-name=prod", "--interruption-queue=prod", "--enable-zonal-shift"}),
		cloud.Settings.Validate()); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme),
		cloud.Kinds.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	// Nobody but kube-system is asked before the manager is started.
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := &recorder{Manager: mgr}
	provider, err := cloud.Build(t.Context(), &operator.Host{
		Manager: seen, Client: mgr.GetClient(), Config: config, Metrics: prometheus.NewRegistry(), ClusterState: true,
		Events: noEvents{}, Now: time.Now,
		Leading: func() bool { return true }, Enabled: func(gate string) bool { return gate == gateReservedCapacity },
		CatalogChanged: func() {}, Refused: func() func(cloudprovider.OfferingRef) bool {
			return nil
		}, Failed: func(string, string) {},
	})
	if err != nil || provider.Name() != Name {
		t.Fatalf("built %v, %v", provider, err)
	}
	for _, want := range []string{"*aws.Provider", "*refresh.Prices", "*refresh.Shifts", "*refresh.Reserved",
		"*interrupt.Watcher", "*nodeclass.Collector"} {
		if !slices.Contains(seen.added, want) {
			t.Errorf("the manager does not run %s, only %v", want, seen.added)
		}
	}
}
