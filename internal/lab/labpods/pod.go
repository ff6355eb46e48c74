package labpods

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddressAnnotationKey is on a pod that runs: the loopback address that it listens on.
const AddressAnnotationKey = "lab.tenon.sh/address"

// pod is a pod of a system node.
type pod struct {
	r          *Runner
	object     *corev1.Pod // as it was when it came
	address    string
	containers []*container

	ctx    context.Context // until it is to end
	cancel context.CancelFunc
	kill   chan struct{} // closed when its grace period is over
	done   chan struct{} // closed when nothing of it runs
	// news has an element when its status is to be written.
	news chan struct{}

	mu     sync.Mutex
	killed sync.Once
	// remove says that its object is to go when it has ended.
	remove bool
}

func newPod(r *Runner, object *corev1.Pod) *pod {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pod{r: r, object: object.DeepCopy(), address: r.addresses.take(), ctx: ctx, cancel: cancel,
		kill: make(chan struct{}), done: make(chan struct{}), news: make(chan struct{}, 1)}
	for i := range object.Spec.Containers {
		p.containers = append(p.containers, newContainer(p, &p.object.Spec.Containers[i]))
	}
	return p
}

func (p *pod) name() string { return p.object.Namespace + "/" + p.object.Name }

// path is a file of the pod.
func (p *pod) path(elements ...string) string {
	folder := fmt.Sprintf("%s_%s_%s", p.object.Namespace, p.object.Name, p.object.UID)
	return filepath.Join(append([]string{p.r.o.Dir, folder}, elements...)...)
}

func (p *pod) begin() { go p.run() }

// end asks the processes to end and kills those that have not within grace. A second call can only make it shorter.
func (p *pod) end(grace time.Duration, remove bool) {
	p.mu.Lock()
	p.remove = p.remove || remove
	p.mu.Unlock()
	p.cancel()
	kill := func() { p.killed.Do(func() { close(p.kill) }) }
	if grace <= 0 {
		kill()
		return
	}
	time.AfterFunc(grace, kill)
}

// run is the life of the pod.
func (p *pod) run() {
	defer close(p.done)
	defer p.r.addresses.give(p.address)
	var running sync.WaitGroup
	if p.prepare() {
		for _, c := range p.containers {
			running.Go(c.run)
		}
		running.Go(p.tell)
		running.Go(p.refresh)
	}
	running.Wait()
	p.forget()
}

// prepare puts the pod's files where its processes find them; it reports whether that was done before the pod ended.
func (p *pod) prepare() bool {
	if !p.executes() {
		return p.ctx.Err() == nil
	}
	for {
		err := p.writeFiles(p.ctx)
		if err == nil {
			err = p.announce(p.ctx)
		}
		if err == nil {
			return true
		}
		if p.ctx.Err() != nil {
			return false
		}
		p.r.o.Log("pod %s: %v", p.name(), err)
		for _, c := range p.containers {
			c.waits("CreateContainerConfigError", err.Error())
		}
		p.writeStatus()
		if !p.pause(time.Second) {
			return false
		}
	}
}

// executes reports whether any container of the pod is more than simulated.
func (p *pod) executes() bool {
	for _, c := range p.containers {
		if c.executes {
			return true
		}
	}
	return false
}

// announce says where the pod listens.
func (p *pod) announce(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, AddressAnnotationKey, p.address)
	_, err := p.r.api.CoreV1().Pods(p.object.Namespace).Patch(ctx, p.object.Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	return err
}

// pause waits, and reports whether the pod is still to run.
func (p *pod) pause(d time.Duration) bool {
	select {
	case <-p.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// removePatience bounds how long the object of an ended pod is tried to be removed.
const removePatience = 10 * time.Second

// forget removes what an ended pod leaves: its credentials, and its object if somebody deleted it. Its logs stay.
func (p *pod) forget() {
	_ = os.RemoveAll(p.path("volumes"))
	_ = os.Remove(p.path("kubeconfig"))
	p.mu.Lock()
	remove := p.remove
	p.mu.Unlock()
	if !remove {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), removePatience)
	defer cancel()
	for {
		now, uid := int64(0), p.object.UID
		err := p.r.api.CoreV1().Pods(p.object.Namespace).Delete(ctx, p.object.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		p.r.o.Log("removing pod %s: %v", p.name(), err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}
