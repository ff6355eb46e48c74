// Package labtest gives Go tests a real Kubernetes control plane: one lab for
// each test package, and a clean slate for each test.
//
//	func TestMain(m *testing.M) { labtest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		l := labtest.New(t)
//		c := l.Client(scheme)
//		...
//	}
//
// Tests that share a lab must not run in parallel, because the slate is the
// whole cluster; Labs gives each of several tests at a time a lab of its own.
// The package is for tests only; it touches the labs it starts and a temporary
// directory.
package labtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/lab"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"
)

// kubeconfigVariable carries the lab from Main to the tests of the process.
const kubeconfigVariable = "TENON_LABTEST_KUBECONFIG"

// cleanPatience bounds how long New waits for the leftovers of the last test.
const cleanPatience = 30 * time.Second

// Main starts a lab, runs the tests of the package and ends the lab. The lab
// also ends when the test process is killed.
func Main(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	running, err := lab.StartTemporary(ctx, os.Stderr)
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := running.Close(); err != nil && code == 0 {
			code = fail(err)
		}
	}()
	if err := os.Setenv(kubeconfigVariable, running.Kubeconfig()); err != nil {
		return fail(err)
	}
	// From here on Ctrl-C ends the tests at once, as go test users expect; the
	// lab follows.
	stop()
	return m.Run()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "labtest:", err)
	return 1
}

// Lab is a test's view of the lab that it has.
type Lab struct {
	t          testing.TB
	kubeconfig string
	config     *rest.Config
	namespace  string
}

// New gives a test the lab with nothing in it: no nodes, no pods, no workloads,
// no custom resources (their definitions stay), no volumes (the lab's storage
// classes stay), and a fresh namespace. It fails
// the test if something of an earlier test can't be removed.
func New(t testing.TB) *Lab {
	t.Helper()
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		t.Fatal("no lab runs: let TestMain of this package call labtest.Main")
	}
	return open(t, kubeconfig)
}

// open wipes the slate of the lab with this kubeconfig.
func open(t testing.TB, kubeconfig string) *Lab {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatalf("read the lab's kubeconfig: %v", err)
	}
	if err := mustBeLocal(config); err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	l := &Lab{t: t, kubeconfig: kubeconfig, config: config}
	ctx, cancel := context.WithTimeout(t.Context(), cleanPatience)
	defer cancel()
	if err := clean(ctx, config); err != nil {
		t.Fatalf("clean the lab: %v", err)
	}
	if l.namespace, err = newNamespace(ctx, config); err != nil {
		t.Fatal(err)
	}
	return l
}

// mustBeLocal makes sure that a slate is wiped only where it may be.
func mustBeLocal(config *rest.Config) error {
	address, err := url.Parse(config.Host)
	if err != nil || address.Hostname() != "127.0.0.1" {
		return fmt.Errorf("the lab's kubeconfig points to %s, which is not a lab on this machine", config.Host)
	}
	return nil
}

// Config returns a configuration for clients, without client-side limits. The
// caller may change it.
func (l *Lab) Config() *rest.Config { return rest.CopyConfig(l.config) }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (l *Lab) Kubeconfig() string { return l.kubeconfig }

// Restart kills parts of the control plane, such as etcd and kube-apiserver, and returns when they are back with all
// their objects. Tests of the package that run later find the lab as ever.
func (l *Lab) Restart(parts ...string) error {
	return lab.Restart(l.t.Context(), filepath.Dir(l.kubeconfig), parts...)
}

// Namespace returns the test's own namespace.
func (l *Lab) Namespace() string { return l.namespace }

// Client returns an uncached client for the types of scheme.
func (l *Lab) Client(scheme *runtime.Scheme) client.Client {
	l.t.Helper()
	c, err := client.New(l.Config(), client.Options{Scheme: scheme})
	if err != nil {
		l.t.Fatalf("make a client: %v", err)
	}
	return c
}

// newNamespace makes a namespace and waits for its service account, without
// which pods are refused.
func newNamespace(ctx context.Context, config *rest.Config) (string, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("make a client: %w", err)
	}
	made, err := c.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make the test's namespace: %w", err)
	}
	err = poll(ctx, func() (bool, error) {
		_, err := c.CoreV1().ServiceAccounts(made.Name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return "", fmt.Errorf("wait for the service account of namespace %s: %w", made.Name, err)
	}
	return made.Name, nil
}

const namespacePrefix = "test-"

// isSystem tells whether a namespace belongs to the control plane.
func isSystem(namespace string) bool { return strings.HasPrefix(namespace, "kube-") }

// poll asks often until done, an error, or the end of ctx.
func poll(ctx context.Context, done func() (bool, error)) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
