package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const (
	// agentTaint is what the agent puts on nodes.
	agentTaint = "agent.example/quarantine"
	// agentName is the name under which the agent writes.
	agentName = "quarantine-agent"
	// teamLabel is on new nodes, and pods may select by it: team blue. The agent makes it another.
	teamLabel = "team"
	// shrunkCPU is the CPU that the agent leaves of a node: less than a pod asks for.
	shrunkCPU = "500m"
)

// agentKind is what an agent does to every node, as soon as it sees it. Nobody has told Tenon of it.
type agentKind struct {
	// change does it to the node, restore takes it back; both say whether there was anything to do. status says that it
	// is the node's status.
	change, restore func(n *corev1.Node) bool
	status          bool
	// evicts has the pods evicted that have come to a node all the same. deletes is for nodes that have registered.
	evicts, deletes bool
	// says are the words by which a pool's condition, and the event of a pod, name the cause; none if the pods always
	// have a node that could take them.
	says []string
	// apart keeps the calm pods in a pool of their own that the agent leaves alone: it would keep them away, too.
	apart bool
}

func agentKinds() map[string]agentKind {
	const by = `"` + agentName + `"`
	return map[string]agentKind{
		"taint":  {change: taint, restore: untaint, says: []string{agentTaint + "=yes:NoExecute", by}},
		"cordon": {change: cordon, restore: uncordon, evicts: true, says: []string{"is cordoned", by}, apart: true},
		"relabel": {change: relabel("red"), restore: relabel("blue"), evicts: true,
			says: []string{"label " + teamLabel, `"red"`, by}},
		"shrink": {change: shrink, restore: grow, status: true, evicts: true, says: []string{"allocatable cpu", by},
			apart: true},
		"evict":  {evicts: true},
		"delete": {deletes: true, says: []string{"was removed before pods had run there"}, apart: true},
	}
}

func byAgent(t corev1.Taint) bool { return t.Key == agentTaint }

func taint(n *corev1.Node) bool {
	if slices.ContainsFunc(n.Spec.Taints, byAgent) {
		return false
	}
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: agentTaint, Value: "yes",
		Effect: corev1.TaintEffectNoExecute})
	return true
}

func untaint(n *corev1.Node) bool {
	before := len(n.Spec.Taints)
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, byAgent)
	return len(n.Spec.Taints) != before
}

func cordon(n *corev1.Node) bool {
	was := n.Spec.Unschedulable
	n.Spec.Unschedulable = true
	return !was
}

func uncordon(n *corev1.Node) bool {
	was := n.Spec.Unschedulable
	n.Spec.Unschedulable = false
	return was
}

func relabel(team string) func(n *corev1.Node) bool {
	return func(n *corev1.Node) bool {
		was := n.Labels[teamLabel]
		n.Labels[teamLabel] = team
		return was != team
	}
}

// shrink is done again if the kubelet writes what it had before.
func shrink(n *corev1.Node) bool {
	left := apiresource.MustParse(shrunkCPU)
	if has, ok := n.Status.Allocatable[corev1.ResourceCPU]; !ok || has.Cmp(left) <= 0 {
		return false
	}
	n.Status.Allocatable[corev1.ResourceCPU] = left
	return true
}

func grow(n *corev1.Node) bool {
	has, all := n.Status.Allocatable[corev1.ResourceCPU], n.Status.Capacity[corev1.ResourceCPU]
	if has.Cmp(apiresource.MustParse(shrunkCPU)) > 0 {
		return false
	}
	n.Status.Allocatable[corev1.ResourceCPU] = all
	return true
}

// agent does to the nodes of each pool what the pool's kind says. It also counts the claims that it sees, by pool.
type agent struct {
	w     *world
	kinds map[string]agentKind
	stop  context.CancelFunc
	done  chan struct{}

	mu   sync.Mutex
	seen map[string]map[types.UID]bool
	most map[string]int
	acts map[string]int
	err  error
}

func (w *world) startAgent(kinds map[string]agentKind) *agent {
	ctx, stop := context.WithCancel(w.ctx)
	a := &agent{w: w, kinds: kinds, stop: stop, done: make(chan struct{}), seen: make(map[string]map[types.UID]bool),
		most: make(map[string]int), acts: make(map[string]int)}
	go func() {
		defer close(a.done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := a.look(ctx); err != nil && ctx.Err() == nil {
					a.err = err
				}
			}
		}
	}()
	w.Cleanup(a.end)
	return a
}

// end stops the agent; what it has done stays.
func (a *agent) end() {
	a.stop()
	<-a.done
}

func (a *agent) look(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := a.w.c.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items {
		pool := nodes.Items[i].Labels[v1.NodePoolLabelKey]
		kind, ours := a.kinds[pool]
		if !ours || nodes.Items[i].DeletionTimestamp != nil {
			continue
		}
		did, err := a.treat(ctx, &kind, &nodes.Items[i])
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("treating a node of %s: %w", pool, err)
		}
		if did && err == nil {
			a.acted(pool)
		}
	}
	if err := a.evict(ctx); err != nil {
		return err
	}
	return a.count(ctx)
}

// treat does to a node what an agent of the kind does, and says whether there was anything to do.
func (a *agent) treat(ctx context.Context, kind *agentKind, n *corev1.Node) (bool, error) {
	before := n.DeepCopy()
	switch {
	case kind.deletes:
		if !slices.Contains(n.Finalizers, v1.TerminationFinalizer) {
			return false, nil
		}
		return true, a.w.c.Delete(ctx, n, client.Preconditions{UID: &n.UID})
	case kind.change == nil || !kind.change(n):
		return false, nil
	}
	return true, a.w.write(ctx, kind, n, before)
}

// write writes a node as the agent. It fails if somebody else has changed the node meanwhile.
func (w *world) write(ctx context.Context, kind *agentKind, n, before *corev1.Node) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if kind.status {
		return w.c.Status().Patch(ctx, n, patch, client.FieldOwner(agentName))
	}
	return w.c.Patch(ctx, n, patch, client.FieldOwner(agentName))
}

// evict evicts the pods that have a node, but for the calm ones, as a drain would. It gives each a second: there will
// be a next one.
func (a *agent) evict(ctx context.Context) error {
	if !slices.ContainsFunc(slices.Collect(maps.Values(a.kinds)), func(k agentKind) bool { return k.evicts }) {
		return nil
	}
	var pods corev1.PodList
	if err := a.w.c.List(ctx, &pods, client.InNamespace(a.w.lab.Namespace())); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		young := time.Since(p.CreationTimestamp.Time) < time.Second
		if p.Spec.NodeName == "" || p.DeletionTimestamp != nil || young || !a.kinds[p.Labels["app"]].evicts {
			continue
		}
		options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
		eviction := &policyv1.Eviction{DeleteOptions: options}
		err := a.w.c.SubResource("eviction").Create(ctx, p, eviction, client.FieldOwner(agentName))
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("evicting %s: %w", p.Name, err)
		}
		if err == nil {
			a.acted(p.Labels["app"])
		}
	}
	return nil
}

func (a *agent) acted(pool string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.acts[pool]++
}

func (a *agent) count(ctx context.Context) error {
	var claims v1.NodeClaimList
	if err := a.w.c.List(ctx, &claims); err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	count := make(map[string]int)
	for i := range claims.Items {
		c := &claims.Items[i]
		pool := c.Labels[v1.NodePoolLabelKey]
		if a.seen[pool] == nil {
			a.seen[pool] = make(map[types.UID]bool)
		}
		a.seen[pool][c.UID] = true
		count[pool]++
		a.most[pool] = max(a.most[pool], count[pool])
	}
	return nil
}

// figures are how many claims of a pool there have been, the most at a time, and how often the agent has acted there.
func (a *agent) figures(pool string) (total, most, acts int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.seen[pool]), a.most[pool], a.acts[pool]
}

// restored takes back what agents of the kinds have done to nodes. It says which node somebody else has changed at the
// same time: the next look settles that, and brings back nothing that was taken away meanwhile.
func (w *world) restored(kinds map[string]agentKind) func() string {
	return func() string {
		for _, n := range w.nodes() {
			kind := kinds[n.Labels[v1.NodePoolLabelKey]]
			before := n.DeepCopy()
			if kind.restore == nil || !kind.restore(&n) {
				continue
			}
			err := w.write(w.ctx, &kind, &n, before)
			if apierrors.IsConflict(err) {
				return err.Error()
			}
			w.must(client.IgnoreNotFound(err))
		}
		return ""
	}
}
