// Package join lets the machines of the simulated cloud join a Kubernetes cluster, as machines do: each reads its user
// data, finds out what it is made of, and registers a Node. What a cloud controller manager does is done here, too:
// zone, region and type on the Node, and its end once the machine is gone. kwok plays the kubelets from there on.
//
// It touches the Kubernetes API only, and knows nothing of the provider that launched the machines.
package join

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// API is what is needed of Kubernetes.
type API interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
	Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error
}

// Options say how machines join.
type Options struct {
	World *cloud.World
	API   API
	// Cluster is the name that user data must give; empty: any.
	Cluster string
	// Start is how long it takes from a running machine to its Node.
	Start time.Duration
	// Kubelet is the version that nodes show, such as v1.33.1.
	Kubelet string
	// Role says whether machines with this instance profile (name or ARN) may join; nil: all.
	Role func(profile string) bool
	// Log hears of trouble; nil: nobody does.
	Log func(format string, args ...any)
}

// Joiner lets machines join.
type Joiner struct {
	opts  Options
	queue workqueue.TypedRateLimitingInterface[string] // ids of instances to look at

	mu       sync.Mutex
	joined   map[string]bool   // a kubelet registers once
	problems map[string]string // why an instance does not join
}

// New makes a joiner. It hears of machines from now on and acts while Run runs.
func New(opts Options) *Joiner {
	if opts.Log == nil {
		opts.Log = func(string, ...any) {}
	}
	if opts.Kubelet == "" {
		opts.Kubelet = "v0.0.0-simulated"
	}
	pause := workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstPause, longestPause)
	j := &Joiner{
		opts: opts, queue: workqueue.NewTypedRateLimitingQueue(pause), joined: map[string]bool{},
		problems: map[string]string{},
	}
	opts.World.OnChange(func(c cloud.Change) { j.queue.Add(c.Instance.ID) })
	return j
}

// Problems says why machines did not join, by instance id.
func (j *Joiner) Problems() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.problems)
}

// Look lets happen what is due for one machine. It returns how long to wait before looking again; zero: until something
// happens to the machine.
func (j *Joiner) Look(ctx context.Context, id string) (time.Duration, error) {
	i, known := j.opts.World.Instance(id)
	switch {
	case !known || i.State == cloud.Terminated:
		return 0, j.remove(ctx, id)
	case i.State == cloud.ShuttingDown || i.Dead:
		return 0, j.silence(ctx, i)
	case i.State != cloud.Running:
		return 0, nil
	}
	if wait := i.RunAt.Add(j.opts.Start).Sub(j.opts.World.Now()); wait > 0 {
		return wait, nil
	}
	return 0, j.register(ctx, i)
}

// register makes the machine's Node, once.
func (j *Joiner) register(ctx context.Context, i cloud.Instance) error {
	j.mu.Lock()
	done := j.joined[i.ID] || j.problems[i.ID] != ""
	j.mu.Unlock()
	if done {
		return nil
	}
	node, err := j.boot(i)
	if err != nil {
		j.mu.Lock()
		j.problems[i.ID] = err.Error()
		j.mu.Unlock()
		j.opts.Log("instance %s never joins: %v", i.ID, err)
		return nil // trying again changes nothing: the machine has only this user data
	}
	err = j.opts.API.Create(ctx, node)
	if apierrors.IsAlreadyExists(err) {
		err = j.takeOver(ctx, node)
	}
	if err != nil {
		return fmt.Errorf("registering node %s: %w", node.Name, err)
	}
	j.mu.Lock()
	j.joined[i.ID] = true
	j.mu.Unlock()
	return nil
}

// takeOver is for a Node that is there: it is ours from an earlier try, or that of a machine that had the address
// before.
func (j *Joiner) takeOver(ctx context.Context, node *corev1.Node) error {
	found := &corev1.Node{}
	if err := j.opts.API.Get(ctx, types.NamespacedName{Name: node.Name}, found); err != nil {
		return err
	}
	if found.Spec.ProviderID == node.Spec.ProviderID {
		return nil
	}
	return fmt.Errorf("the Node of %s has the name; it must go first", found.Spec.ProviderID)
}

// boot is what the machine does before its kubelet registers.
func (j *Joiner) boot(i cloud.Instance) (*corev1.Node, error) {
	image, name := j.image(i.Image)
	s, err := read(i.UserData, image)
	if err != nil {
		return nil, err
	}
	if j.opts.Cluster != "" && s.Cluster != j.opts.Cluster {
		return nil, fmt.Errorf("the user data is for the cluster %q, this is %q", s.Cluster, j.opts.Cluster)
	}
	if j.opts.Role != nil && !j.opts.Role(i.Profile) {
		return nil, fmt.Errorf("the cluster does not let machines with the instance profile %q in", i.Profile)
	}
	info, known := j.opts.World.InstanceType(i.Type)
	if !known {
		return nil, fmt.Errorf("there is no instance type %s", i.Type)
	}
	m := machine{info: info, instance: i, image: image, settings: s}
	return m.node(j.opts.World.Region(), windowsBuild(name), j.opts.Kubelet, j.opts.World.Now())
}

func (j *Joiner) image(id string) (system, string) {
	for _, m := range j.opts.World.Images() {
		if aws.ToString(m.ImageId) == id {
			name := aws.ToString(m.Name)
			return systemOf(name, m.Platform == ec2types.PlatformValuesWindows), name
		}
	}
	return unknown, ""
}

// silence stops the heartbeats of a machine's Node: kwok lets go of it.
func (j *Joiner) silence(ctx context.Context, i cloud.Instance) error {
	found := &corev1.Node{}
	err := j.opts.API.Get(ctx, types.NamespacedName{Name: i.PrivateDNS}, found)
	if apierrors.IsNotFound(err) || err == nil && (found.Spec.ProviderID != providerID(i.Zone, i.ID) ||
		found.Labels[simulated] == "") {
		return nil
	}
	if err == nil {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%[1]q:null},"annotations":{%[1]q:null}}}`, simulated)
		err = client.IgnoreNotFound(j.opts.API.Patch(ctx, found, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	if err != nil {
		return fmt.Errorf("silencing node %s: %w", i.PrivateDNS, err)
	}
	return nil
}

// remove deletes the Node of a machine that is gone. Finalizers may hold it a while longer.
func (j *Joiner) remove(ctx context.Context, id string) error {
	j.mu.Lock()
	delete(j.joined, id)
	delete(j.problems, id)
	j.mu.Unlock()
	node, err := j.nodeOf(ctx, id)
	if err != nil || node == nil || !node.DeletionTimestamp.IsZero() {
		return err
	}
	err = j.opts.API.Delete(ctx, node, client.Preconditions{UID: &node.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting node %s: %w", node.Name, err)
	}
	return nil
}

// nodeOf finds the Node of an instance, which the world may have forgotten.
func (j *Joiner) nodeOf(ctx context.Context, id string) (*corev1.Node, error) {
	if i, known := j.opts.World.Instance(id); known {
		found := &corev1.Node{}
		err := j.opts.API.Get(ctx, types.NamespacedName{Name: i.PrivateDNS}, found)
		if apierrors.IsNotFound(err) || err == nil && found.Spec.ProviderID != providerID(i.Zone, i.ID) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("getting node %s: %w", i.PrivateDNS, err)
		}
		return found, nil
	}
	list := &corev1.NodeList{}
	if err := j.opts.API.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	for n := range list.Items {
		if of, ok := instanceOf(list.Items[n].Spec.ProviderID); ok && of == id {
			return &list.Items[n], nil
		}
	}
	return nil, nil
}
