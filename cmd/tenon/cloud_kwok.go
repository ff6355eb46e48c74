package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/kwok"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/catalog"
	"github.com/tenon-sh/tenon/internal/validate"
)

// newKwok is the simulated cloud, whose nodes are played by kwok.
func newKwok(o *options) (cloud, error) {
	types, err := catalog.Default()
	if o.instanceTypesFile != "" {
		types, err = catalog.Load(o.instanceTypesFile)
	}
	if err != nil {
		return cloud{}, fmt.Errorf("loading instance types (--instance-types-file-path): %w", err)
	}
	return cloud{
		scheme:  kwokv1alpha1.AddToScheme,
		classes: []schema.GroupVersionKind{kwokv1alpha1.GroupVersion().WithKind(kwokv1alpha1.Kind)},
		labels:  validate.Labels{WellKnown: labelsOf(types), RestrictedDomains: []string{kwokv1alpha1.Group}},
		build: func(_ context.Context, on ground) (cloudprovider.Provider, error) {
			return buildKwok(on, types)
		},
	}, nil
}

func buildKwok(on ground, types []*cloudprovider.InstanceType) (cloudprovider.Provider, error) {
	own := rest.CopyConfig(on.config)
	own.QPS, own.Burst = 1000, 2000 // the simulated cloud is not a client of the controller's budget
	api, err := client.New(own, client.Options{Scheme: on.mgr.GetScheme(), Mapper: on.mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connecting the simulated cloud: %w", err)
	}
	provider, err := kwok.New(kwok.Options{API: api, NodeClasses: on.mgr.GetClient(), Types: types})
	if err != nil {
		return nil, err
	}
	if err := kwok.SetupNodeClassController(on.mgr, provider); err != nil {
		return nil, err
	}
	return provider, on.mgr.Add(provider)
}

// labelsOf are the labels that types and offerings decide.
func labelsOf(types []*cloudprovider.InstanceType) map[string]bool {
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
	return out
}
