// Package kwokcloud is what the simulated cloud brings to the operator: its settings, its labels and how its provider
// is built.
//
// It is public and wires: what the cloud does is in cloudprovider/kwok.
package kwokcloud

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/kwok"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/catalog"
	"github.com/tenon-sh/tenon/operator"
)

// Name is the cloud's value of --cloud-provider.
const Name = "kwok"

// New returns the simulated cloud, whose nodes are played by kwok.
func New() operator.Cloud {
	s := &settings{}
	return operator.Cloud{
		Name: Name,
		Kinds: operator.Kinds{
			AddToScheme: kwokv1alpha1.AddToScheme,
			NodeClasses: []schema.GroupVersionKind{kwokv1alpha1.GroupVersion().WithKind(kwokv1alpha1.Kind)},
		},
		Settings: operator.Settings{Register: s.register, Validate: s.validate},
		Labels: func() operator.Labels {
			return operator.Labels{WellKnown: labelsOf(s.types), RestrictedDomains: []string{kwokv1alpha1.Group}}
		},
		Provisioners: func() operator.Provisioners {
			return operator.Provisioners{NodeClass: schema.GroupKind{Group: kwokv1alpha1.Group,
				Kind: kwokv1alpha1.Kind}}
		},
		Build: func(_ context.Context, host *operator.Host) (cloudprovider.Provider, error) {
			return build(host, s.types)
		},
	}
}

// settings are those of the simulated cloud.
type settings struct {
	file string

	// types are those of the file, or the built-in ones; validate reads them.
	types []*cloudprovider.InstanceType
}

func (s *settings) register(f *pflag.FlagSet) {
	f.StringVar(&s.file, "instance-types-file-path", "", "JSON file with instance types for the simulated cloud; "+
		"empty for the built-in list")
}

func (s *settings) validate() (err error) {
	if s.file == "" {
		s.types, err = catalog.Default()
	} else {
		s.types, err = catalog.Load(s.file)
	}
	if err != nil {
		return fmt.Errorf("loading instance types (--instance-types-file-path): %w", err)
	}
	return nil
}

func build(host *operator.Host, types []*cloudprovider.InstanceType) (cloudprovider.Provider, error) {
	own := rest.CopyConfig(host.Config)
	own.QPS, own.Burst = 1000, 2000 // the simulated cloud is not a client of the controller's budget
	api, err := client.New(own, client.Options{Scheme: host.Manager.GetScheme(), Mapper: host.Manager.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connecting the simulated cloud: %w", err)
	}
	provider, err := kwok.New(kwok.Options{API: api, NodeClasses: host.Manager.GetClient(), Types: types})
	if err != nil {
		return nil, err
	}
	if err := kwok.SetupNodeClassController(host.Manager, provider); err != nil {
		return nil, err
	}
	return provider, host.Manager.Add(provider)
}

// labelsOf are the labels that types and offerings decide.
func labelsOf(types []*cloudprovider.InstanceType) []string {
	out := make(map[string]bool)
	for _, t := range types {
		for key := range t.Labels {
			out[key] = true
		}
		for i := range t.Offerings {
			for key := range t.Offerings[i].Labels {
				out[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(out))
}
