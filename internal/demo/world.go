package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
	"github.com/tenon-sh/tenon/examples"
)

const (
	fieldOwner = "tenon-demo"
	// The names in the examples.
	poolName, inflateName = "default", "inflate"
	namespace             = "default"
)

// world is the demo's view of the cluster: live for what it changes and counts, watched for what it shows.
type world struct {
	config  *rest.Config
	sky     sky
	scheme  *runtime.Scheme
	api     client.Client
	watched cache.Cache
	changed chan struct{}
	stopped sync.WaitGroup
}

func newWorld(kubeconfig string, over sky) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the lab's kubeconfig: %w", err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme,
		kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the lab: %w", err)
	}
	return &world{config: config, sky: over, scheme: scheme, api: api, changed: make(chan struct{}, 1)}, nil
}

// install applies the CustomResourceDefinitions and returns when the API server serves them.
func (w *world) install(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, installPatience)
	defer cancel()
	files, err := fs.Glob(crds.FS(), "*.yaml")
	if err != nil || len(files) == 0 {
		return errors.Join(errors.New("the binary carries no CustomResourceDefinitions"), err)
	}
	for _, file := range files {
		applied, err := w.apply(ctx, crds.FS(), file)
		if err != nil {
			return err
		}
		for _, definition := range applied {
			err := poll(ctx, "waiting for "+definition.GetName()+" to be served", func() (bool, error) {
				err := w.api.Get(ctx, client.ObjectKeyFromObject(definition), definition)
				return established(definition), err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == "Established" {
			return c["status"] == "True"
		}
	}
	return false
}

func (w *world) applyExamples(ctx context.Context) error {
	files, _ := w.sky.examples()
	for _, file := range files {
		if _, err := w.apply(ctx, examples.FS(), file); err != nil {
			return err
		}
	}
	return nil
}

// apply applies every object of a file, as kubectl apply --server-side does.
func (w *world) apply(ctx context.Context, files fs.FS, file string) ([]*unstructured.Unstructured, error) {
	content, err := fs.ReadFile(files, file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var applied []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return applied, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		text, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		patch := client.RawPatch(types.ApplyPatchType, text)
		if err := w.api.Patch(ctx, object, patch, client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
			return nil, fmt.Errorf("applying %s %s of %s: %w", object.GetKind(), object.GetName(), file, err)
		}
		applied = append(applied, object)
	}
}

func (w *world) poolReady(ctx context.Context) (bool, error) {
	pool := &v1.NodePool{}
	if err := w.api.Get(ctx, client.ObjectKey{Name: poolName}, pool); err != nil {
		return false, fmt.Errorf("getting NodePool %s: %w", poolName, err)
	}
	return meta.IsStatusConditionTrue(pool.Status.Conditions, v1.ConditionTypeReady), nil
}

func inflate() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: inflateName}}
}

func (w *world) scale(ctx context.Context, replicas int) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := w.api.Patch(ctx, inflate(), patch); err != nil {
		return fmt.Errorf("scaling deployment %s: %w", inflateName, err)
	}
	return nil
}

func (w *world) deleteInflate(ctx context.Context) error {
	if err := w.api.Delete(ctx, inflate(), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("deleting deployment %s: %w", inflateName, err)
	}
	return nil
}

// watch follows what look reads until ctx ends, and returns once everything that is there is known.
func (w *world) watch(ctx context.Context) error {
	var err error
	w.watched, err = cache.New(w.config, cache.Options{Scheme: w.scheme, ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Namespaces: map[string]cache.Config{namespace: {LabelSelector: labels.SelectorFromSet(
			inflateLabels())}}},
	}})
	if err != nil {
		return fmt.Errorf("watching the lab: %w", err)
	}
	nudge := func(any) {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	w.stopped.Go(func() { _ = w.watched.Start(ctx) }) // it ends when ctx does, and has nothing to say then
	for _, object := range []client.Object{&corev1.Pod{}, &corev1.Node{}, &v1.NodeClaim{}} {
		informer, err := w.watched.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: nudge, UpdateFunc: func(_, now any) { nudge(now) }, DeleteFunc: nudge,
		})
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	patience, cancel := context.WithTimeout(ctx, installPatience)
	defer cancel()
	if !w.watched.WaitForCacheSync(patience) {
		return fmt.Errorf("watching the lab: %w", context.Cause(patience))
	}
	return nil
}

func inflateLabels() labels.Set { return labels.Set{"app": inflateName} }

// leftovers is what is still there of the nodes that the demo caused.
type leftovers struct{ nodes, claims, instances int }

func (l leftovers) any() bool { return l != leftovers{} }

func (l leftovers) String() string {
	return fmt.Sprintf("%d nodes, %d NodeClaims and %d instances of the cloud", l.nodes, l.claims, l.instances)
}

// left counts, past every cache, what is left.
func (w *world) left(ctx context.Context) (leftovers, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	instances, err := w.sky.instances(ctx, w.api)
	if err != nil {
		return leftovers{}, err
	}
	nodes, claims := &corev1.NodeList{}, &v1.NodeClaimList{}
	if err := w.api.List(ctx, nodes, client.HasLabels{v1.NodePoolLabelKey}); err != nil {
		return leftovers{}, fmt.Errorf("counting nodes: %w", err)
	}
	if err := w.api.List(ctx, claims); err != nil {
		return leftovers{}, fmt.Errorf("counting NodeClaims: %w", err)
	}
	return leftovers{nodes: len(nodes.Items), claims: len(claims.Items), instances: instances}, nil
}
