// Package labpods gives a lab nodes whose pods run: system nodes, for the controller's own chart. A container of
// Tenon's image becomes a process of this machine, with the environment, arguments, files, service account and probes
// that its pod says; what it prints is what "kubectl logs" shows. Containers of other images are simulated, as on all
// nodes of a lab, so no manifest can start a program of its own choice.
//
// It stands beside the floors, as the lab does: commands and tests use it, the autoscaler never does. It touches the
// lab's API server, loopback addresses, a folder that it is given, and the processes that it starts.
package labpods

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options say what to run.
type Options struct {
	// Config leads to the lab's API server, as its administrator.
	Config *rest.Config
	// Dir is the folder for the pods' files and logs. It is made if it is not there.
	Dir string
	// Executable is what Tenon's image stands for.
	Executable string
	// Zones has a zone for each system node.
	Zones []string
	// Env is the environment that the cloud gives to every container, as EKS does; a pod's own wins. It may be nil.
	Env func() []string
	// Log hears of what goes wrong; nobody does if it is nil.
	Log func(format string, args ...any)
}

// Runner runs pods until it is closed.
type Runner struct {
	o         Options
	api       kubernetes.Interface
	addresses *addresses
	logs      *logServer

	stop context.CancelFunc
	done sync.WaitGroup

	mu   sync.Mutex
	pods map[string]*pod // by UID
}

// Start makes the nodes and runs what comes to them until Close.
func Start(ctx context.Context, o Options) (*Runner, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("resolving the folder of the pods: %w", err)
	}
	o.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the pods: %w", err)
	}
	o.Config = rest.CopyConfig(o.Config)
	o.Config.UserAgent = "tenon-lab-pods"
	api, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the lab: %w", err)
	}
	r := &Runner{o: o, api: api, addresses: newAddresses(dir), pods: map[string]*pod{}}
	if r.logs, err = serveLogs(r); err != nil {
		return nil, err
	}
	if err := r.makeNodes(ctx); err != nil {
		r.logs.close()
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	r.done.Go(func() { r.beat(running) })
	for _, name := range r.nodeNames() {
		r.done.Go(func() { r.watch(running, name) })
	}
	return r, nil
}

// Close ends all processes and waits until they are gone. The objects stay.
func (r *Runner) Close() error {
	r.stop()
	r.done.Wait()
	r.mu.Lock()
	pods := r.pods
	r.pods = map[string]*pod{}
	r.mu.Unlock()
	for _, p := range pods {
		p.end(closeGrace, false)
	}
	for _, p := range pods {
		<-p.done
	}
	r.logs.close()
	return nil
}

// closeGrace is how long processes may take to end when the lab does.
const closeGrace = 2 * time.Second

// sync brings one pod further: it begins, changes or ends.
func (r *Runner) sync(object *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := string(object.UID)
	p, known := r.pods[key]
	finished := object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
	if !known && (object.DeletionTimestamp != nil || !finished) {
		p = newPod(r, object)
		r.pods[key] = p
		p.begin()
	}
	if object.DeletionTimestamp != nil {
		p.end(grace(object), true)
	}
}

// gone ends a pod whose object is no more.
func (r *Runner) gone(uid string) {
	r.mu.Lock()
	p := r.pods[uid]
	delete(r.pods, uid)
	r.mu.Unlock()
	if p != nil {
		p.end(0, false)
	}
}

func grace(object *corev1.Pod) time.Duration {
	if s := object.DeletionGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}
