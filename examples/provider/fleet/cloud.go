// Package fleet is a provider: class.go has the kind of NodeClass, catalog.go what is sold, provider.go the interface
// cloudprovider.Provider, and cloud.go what the operator has to know.
package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/provider/machines"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/operator"
)

// settings are those of the cloud. Each flag has an environment variable, too: FLEET_DIR.
type settings struct{ dir string }

func (s *settings) register(f *pflag.FlagSet) {
	f.StringVar(&s.dir, "fleet-dir", filepath.Join(os.TempDir(), "fleet"), "folder of the pretend machines")
}

func (s *settings) validate() error {
	if s.dir == "" {
		return errors.New("--fleet-dir is empty; name a folder for the pretend machines")
	}
	return nil
}

// New returns the cloud for the operator.
func New() operator.Cloud {
	s := &settings{}
	return operator.Cloud{
		Name: "fleet",
		Kinds: operator.Kinds{AddToScheme: AddToScheme,
			NodeClasses: []schema.GroupVersionKind{GroupVersion().WithKind(Kind)}},
		Settings: operator.Settings{Register: s.register, Validate: s.validate},
		Labels: func() operator.Labels {
			return operator.Labels{WellKnown: []string{SizeLabel}, RestrictedDomains: []string{Group}}
		},
		Build: func(_ context.Context, host *operator.Host) (cloudprovider.Provider, error) { return build(s, host) },
	}
}

// build makes the provider, and has the manager run what works in its background.
func build(s *settings, host *operator.Host) (cloudprovider.Provider, error) {
	fleet, err := machines.Open(s.dir)
	if err != nil {
		return nil, err
	}
	kubelets := &machines.Kubelets{Fleet: fleet, API: host.Manager.GetClient(), Node: nodeOf}
	return NewProvider(fleet, host.Manager.GetClient(), host.Leading), host.Manager.Add(kubelets)
}

// nodeOf is the Node that a machine makes of itself: with what its kubelet was told in its user data, and with the
// taint that keeps pods away until Tenon has seen it.
func nodeOf(m *machines.Machine) *corev1.Node {
	i := instanceOf(m)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: i.ClaimName, Labels: i.Labels},
		Spec:       corev1.NodeSpec{ProviderID: i.ProviderID, Taints: []corev1.Taint{v1.UnregisteredNoExecuteTaint()}},
		Status:     corev1.NodeStatus{Capacity: i.Capacity, Allocatable: i.Allocatable},
	}
}
