package operator

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/internal/ingest/apiserver"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/lease"
	"github.com/tenon-sh/tenon/internal/observe/measure"
)

func restConfig(o *options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (give --kubeconfig or set KUBECONFIG): %w", err)
	}
	config.QPS, config.Burst = float32(o.kubeClientQPS), o.kubeClientBurst
	config.UserAgent = "tenon"
	return config, nil
}

// newManager makes the manager. term is how long this replica leads; lost is told when another has taken the lease from
// it.
func newManager(config *rest.Config, cloud *Cloud, o *options, term *lease.Term, lost func(error)) (manager.Manager,
	error) {
	scheme, err := newScheme(cloud)
	if err != nil {
		return nil, err
	}
	election := rest.CopyConfig(config)
	election.QPS, election.Burst = 20, 30 // the lease must not wait behind a burst of launches
	config = rest.CopyConfig(config)
	config.Wrap(measure.Calls(metrics.Registry, time.Now))
	var lock resourcelock.Interface
	if !o.disableElection {
		if lock, err = lease.New(election, electionNamespace(o), o.electionName, term, lost); err != nil {
			return nil, err
		}
	}
	lasts := lease.Lasts
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache:  cache.Options{DefaultTransform: decode.Strip, NewInformer: apiserver.NewInformer},
		// see package tolerant
		Client:                  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                 metricsOptions(o),
		HealthProbeBindAddress:  address(o.bindAddress, o.healthProbePort),
		LeaderElection:          !o.disableElection,
		LeaderElectionID:        o.electionName,
		LeaderElectionNamespace: electionNamespace(o),
		LeaderElectionConfig:    election,
		LeaseDuration:           &lasts,

		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
	})
	if err != nil {
		return nil, namePort(fmt.Errorf("connecting to the cluster: %w", err), o)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, nil
}

// namePort names the setting behind a port that can't be listened on, and what to do. Other errors stay as they are.
func namePort(err error, o *options) error {
	var failed *net.OpError
	if !errors.As(err, &failed) || failed.Op != "listen" {
		return err
	}
	at, ok := failed.Addr.(*net.TCPAddr)
	if !ok {
		return err
	}
	for _, setting := range []struct {
		flag string
		port int
	}{{"--metrics-port", o.metricsPort}, {"--health-probe-port", o.healthProbePort}} {
		if at.Port != 0 && at.Port == setting.port {
			return fmt.Errorf("%s %d: %w; give another port, or 0 for none", setting.flag, setting.port, failed)
		}
	}
	return err
}

// address is host:port, or "0", controller-runtime's word for no server.
func address(host string, port int) string {
	if port == 0 {
		return "0"
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// electionNamespace is where the lease lives: as told, or the controller's own namespace, or kube-system outside of a
// cluster.
func electionNamespace(o *options) string {
	if o.electionNamespace != "" {
		return o.electionNamespace
	}
	return ownNamespace()
}

// ownNamespace is where the controller runs.
func ownNamespace() string {
	if ns := os.Getenv("SYSTEM_NAMESPACE"); ns != "" {
		return ns
	}
	if ns, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return string(ns)
	}
	return "kube-system"
}

// checkCRDs fails early, and with the fix, if the cluster does not know our kinds.
func checkCRDs(mgr manager.Manager, kinds []schema.GroupVersionKind) error {
	for _, gvk := range kinds {
		_, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the cluster does not serve %s %s: install %s: %w", gvk.Kind, gvk.GroupVersion(),
				definition(gvk), err)
		}
		if err != nil {
			return fmt.Errorf("asking the cluster at %s what it serves (check --kubeconfig): %w",
				mgr.GetConfig().Host, err)
		}
	}
	return nil
}

// definition is what to install so that the cluster serves a kind. Only those of this repository are in its charts.
func definition(gvk schema.GroupVersionKind) string {
	switch gvk.Group {
	case v1.Group, awsv1.Group, kwokv1alpha1.Group:
		return "the CustomResourceDefinitions first (kubectl apply -f charts/karpenter-crd/templates)"
	}
	return fmt.Sprintf("its CustomResourceDefinition first; who made the provider of %s has it", gvk.Group)
}

// newScheme knows Kubernetes, our kinds and those of the cloud.
func newScheme(cloud *Cloud) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1.AddToScheme, v1alpha5.AddToScheme, cloud.Kinds.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

// requiredKinds are those that the API server must serve.
func (c *Cloud) requiredKinds() []schema.GroupVersionKind {
	return append([]schema.GroupVersionKind{v1.GroupVersion().WithKind("NodePool"),
		v1.GroupVersion().WithKind("NodeClaim")},
		c.Kinds.NodeClasses...)
}
