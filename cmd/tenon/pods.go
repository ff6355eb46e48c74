package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// podLister lists and watches the pods of all namespaces, in the encoding that costs least.
func podLister(config *rest.Config) (toolscache.ListerWatcher, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to watch pods: %w", err)
	}
	return toolscache.NewListWatchFromClient(core.RESTClient(), "pods", corev1.NamespaceAll, fields.Everything()), nil
}
