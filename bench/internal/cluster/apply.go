package cluster

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

//go:embed manifests
var manifests embed.FS

// The pools that there are manifests of.
const (
	PoolOneType = "pool"    // one type; empty nodes go at once
	PoolMixed   = "mixed"   // many types; nothing may go until OpenBudget
	PoolRolling = "rolling" // one type; a tenth of the nodes may be replaced at a time
)

// readyPatience bounds each wait for a cluster that has nothing else to do.
const readyPatience = 2 * time.Minute

// resources of the objects that a run creates.
func resourceOf(kind string) (schema.GroupVersionResource, bool) {
	r, ok := map[string]schema.GroupVersionResource{
		"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1",
			Resource: "customresourcedefinitions"},
		"KWOKNodeClass": {Group: "karpenter.kwok.sh", Version: "v1alpha1", Resource: "kwoknodeclasses"},
		"NodePool":      {Group: "karpenter.sh", Version: "v1", Resource: "nodepools"},
		"NodeClaim":     {Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"},
	}[kind]
	return r, ok
}

// Client works on the objects of a lab.
type Client struct {
	typed   kubernetes.Interface
	dynamic dynamic.Interface
}

// Client connects to the lab.
func (l *Lab) Client() (*Client, error) {
	config, err := l.config()
	if err != nil {
		return nil, err
	}
	plain, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	// Pods come in hundreds, so watching them in the compact encoding keeps this program out of the way.
	compact := rest.CopyConfig(config)
	compact.ContentType = "application/vnd.kubernetes.protobuf"
	typed, err := kubernetes.NewForConfig(compact)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Client{typed: typed, dynamic: plain}, nil
}

// InstallCRDs creates the definitions in the folders and waits until they are served.
func (c *Client) InstallCRDs(ctx context.Context, folders []string) error {
	var names []string
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no CustomResourceDefinitions in %s", folder)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read a CustomResourceDefinition: %w", err)
			}
			made, err := c.create(ctx, content)
			if err != nil {
				return err
			}
			names = append(names, made...)
		}
	}
	for _, name := range names {
		if err := c.awaitCondition(ctx, "CustomResourceDefinition", name, "Established"); err != nil {
			return err
		}
	}
	return nil
}

// CreatePool creates the NodeClass and the NodePool, and waits until the controller calls the pool ready.
func (c *Client) CreatePool(ctx context.Context, name string) error {
	content, err := manifests.ReadFile("manifests/" + name + ".yaml")
	if err != nil {
		return fmt.Errorf("read the manifest of the pool: %w", err)
	}
	if _, err := c.create(ctx, content); err != nil {
		return err
	}
	return c.awaitCondition(ctx, "NodePool", poolName, "Ready")
}

// AwaitServiceAccount waits for the account without which pods are refused.
func (c *Client) AwaitServiceAccount(ctx context.Context) error {
	return poll(ctx, "the service account of the pods", func(ctx context.Context) (bool, error) {
		_, err := c.typed.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// create creates every object in a text of YAML documents and gives their names.
func (c *Client) create(ctx context.Context, documents []byte) ([]string, error) {
	var names []string
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(documents), 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read a manifest: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		resource, ok := resourceOf(object.GetKind())
		if !ok {
			return nil, fmt.Errorf("read a manifest: %q is not a kind that a run creates", object.GetKind())
		}
		if _, err := c.dynamic.Resource(resource).Create(ctx, &object, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		names = append(names, object.GetName())
	}
}

func (c *Client) awaitCondition(ctx context.Context, kind, name, condition string) error {
	resource, _ := resourceOf(kind)
	return poll(ctx, kind+" "+name+" to be "+condition, func(ctx context.Context) (bool, error) {
		object, err := c.dynamic.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return isTrue(object, condition), nil
	})
}

// isTrue tells whether an object has a condition with status True.
func isTrue(object *unstructured.Unstructured, condition string) bool {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == condition {
			return c["status"] == "True"
		}
	}
	return false
}

// poll asks until done says yes; it is for the time before the clock runs.
func poll(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyPatience, fmt.Errorf("nothing after %s", readyPatience))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done(ctx)
		if ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}
}
