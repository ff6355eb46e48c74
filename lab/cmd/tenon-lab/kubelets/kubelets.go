// Package kubelets plays the kubelets of a lab: it runs kwok's controller with
// the lab's own stages over every Node that is labelled as simulated, and the
// volume drivers beside it. It touches the API server it is given, and one
// loopback port for its health.
package kubelets

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tenon-sh/tenon/lab/cmd/tenon-lab/volumes"
	"github.com/tenon-sh/tenon/lab/internal/stages"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
)

// NodeSelector picks the nodes that get a simulated kubelet. A node that loses
// the label loses its kubelet: that is how a test makes a machine die.
const NodeSelector = "kwok.x-k8s.io/node=fake"

// Options says where to work.
type Options struct {
	Kubeconfig string
	// Listen is the loopback address that answers /healthz.
	Listen string
}

// Run plays kubelets until ctx ends.
func Run(ctx context.Context, options Options) error {
	logger := log.NewLogger(os.Stderr, log.LevelWarn)
	ctx = log.NewContext(ctx, logger)
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read --kubeconfig: %w", err)
	}
	// A thousand kubelets share this client: no client-side limit.
	config.QPS = -1
	config.UserAgent = "tenon-lab-kubelets"
	typed, err := newClient(config)
	if err != nil {
		return err
	}
	controller, err := newController(config, typed)
	if err != nil {
		return err
	}
	volumes.Start(ctx, typed)
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("start kwok: %w", err)
	}
	return serveHealth(ctx, options.Listen)
}

func newClient(config *rest.Config) (kubernetes.Interface, error) {
	binary := rest.CopyConfig(config)
	binary.ContentType = "application/vnd.kubernetes.protobuf"
	binary.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return typed, nil
}

func newController(config *rest.Config, typed kubernetes.Interface) (*controllers.Controller, error) {
	loaded, err := loadStages()
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a dynamic client: %w", err)
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	controller, err := controllers.NewController(controllers.Config{
		ID:                           "tenon-lab",
		Clock:                        clock.RealClock{},
		TypedClient:                  newSteadyClient(typed),
		DynamicClient:                untyped,
		RESTMapper:                   restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(resources)),
		RESTClient:                   typed.CoreV1().RESTClient(),
		ManageNodesWithLabelSelector: NodeSelector,
		LocalStages:                  loaded,
		FuncMap:                      stages.Functions(version.Get().GitVersion),
		CIDR:                         "10.128.0.0/9",
		NodePlayStageParallelism:     16,
		PodPlayStageParallelism:      32,
		PodsOnNodeSyncParallelism:    4,
		// Leases stay off: with them kwok ignores a pod whose event overtakes
		// the lease of its node, and that pod would never run. Heartbeats in
		// the node status keep the nodes alive.
		NodeLeaseDurationSeconds: 0,
		NodeLeaseParallelism:     1,
	})
	if err != nil {
		return nil, fmt.Errorf("configure kwok: %w", err)
	}
	return controller, nil
}

func serveHealth(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen on --listen: %w", err)
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" {
				http.NotFound(w, r)
			}
		}),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve /healthz: %w", err)
	}
	return nil
}
