// Package karpenter runs the scheduler of the peer, sigs.k8s.io/karpenter, as a library: its own provisioner sets the
// scheduler up, from its own cluster state, and its own scheduler solves.
//
// What is timed is what the provisioner does for a batch: copy the nodes of its state, build topology and scheduler,
// solve, and cut the lists of types to the length that it sends. Its cluster state, its instance types and copies of
// the pods are ready before the clock starts, and its reads are answered from maps, without the copies that a real
// cache makes.
package karpenter

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	peerv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/tenon-sh/tenon/bench/internal/contest"
	"github.com/tenon-sh/tenon/bench/internal/outcome"
	"github.com/tenon-sh/tenon/bench/internal/workload"
)

// Solver is the peer.
type Solver struct{ options *options.Options }

// New sets the peer up with its defaults, except that it may use all cores of the machine: it runs as many workers as
// its container requests cores.
func New() (*Solver, error) {
	log.SetLogger(logr.Discard())
	o := &options.Options{}
	flags := &options.FlagSet{FlagSet: flag.NewFlagSet("karpenter", flag.ContinueOnError)}
	flags.SetOutput(io.Discard)
	o.AddFlags(flags)
	if err := o.Parse(flags, fmt.Sprintf("--cpu-requests=%d", 1000*runtime.GOMAXPROCS(0))); err != nil {
		return nil, fmt.Errorf("set the peer's options: %w", err)
	}
	return &Solver{options: o}, nil
}

// Prepare implements contest.Solver.
func (s *Solver) Prepare(w *workload.Workload, policy contest.Policy) (contest.Run, error) {
	ctx := options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), s.options)
	pools, err := poolsOf(w)
	if err != nil {
		return nil, err
	}
	r := &run{options: s.options, workload: w, pods: make([]*corev1.Pod, len(w.Pods))}
	for i, p := range w.Pods {
		r.pods[i] = p.DeepCopy()
	}
	cloud := newCloud(w.Types)
	reader := newStore(w, pools)
	r.cluster = state.NewCluster(clock.RealClock{}, reader, cloud)
	for _, n := range w.Nodes {
		if err := r.cluster.UpdateNode(ctx, n.DeepCopy()); err != nil {
			return nil, fmt.Errorf("tell the peer of %s: %w", n.Name, err)
		}
	}
	for _, p := range w.Running {
		if err := r.cluster.UpdatePod(ctx, p); err != nil {
			return nil, fmt.Errorf("tell the peer of %s: %w", p.Name, err)
		}
	}
	r.provisioner = provisioning.NewProvisioner(reader, events.NewRecorder(&record.FakeRecorder{}), cloud, r.cluster,
		clock.RealClock{}, nil, nil)
	r.settings = []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(int(math.Ceil(float64(s.options.CPURequests) / 1000))),
		scheduling.MinValuesPolicy(s.options.MinValuesPolicy),
	}
	if policy.IgnorePreferences {
		r.settings = append(r.settings, scheduling.IgnorePreferences)
	}
	return r, nil
}

// poolsOf gives the pools as the peer's type, and ready.
func poolsOf(w *workload.Workload) ([]peerv1.NodePool, error) {
	out := make([]peerv1.NodePool, len(w.Pools))
	for i, p := range w.Pools {
		content, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("write the pool %s: %w", p.Name, err)
		}
		if err := json.Unmarshal(content, &out[i]); err != nil {
			return nil, fmt.Errorf("read the pool %s: %w", p.Name, err)
		}
		out[i].StatusConditions().SetTrue(peerv1.ConditionTypeValidationSucceeded)
		out[i].StatusConditions().SetTrue(peerv1.ConditionTypeNodeClassReady)
		out[i].StatusConditions().SetTrue(peerv1.ConditionTypeNodeRegistrationHealthy)
	}
	return out, nil
}

// run is one workload before the peer.
type run struct {
	options     *options.Options
	workload    *workload.Workload
	pods        []*corev1.Pod
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	settings    []scheduling.Options
	results     scheduling.Results
}

// Solve implements contest.Run. The minute that the peer gives itself is lifted: its time ends with the context.
func (r *run) Solve(ctx context.Context) error {
	ctx = options.ToContext(injection.WithControllerName(ctx, "provisioner"), r.options)
	nodes := r.cluster.DeepCopyNodes()
	s, err := r.provisioner.NewScheduler(ctx, r.pods, nodes.Active(), sets.New[types.UID](), r.settings...)
	if err != nil {
		return fmt.Errorf("make the peer's scheduler: %w", err)
	}
	results, err := s.Solve(ctx, r.pods)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("solve with the peer: %w", err)
	}
	r.results = results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes)
	return err
}

// Bound implements contest.Run: the peer proves none.
func (r *run) Bound() float64 { return 0 }

// Core implements contest.Run: the peer works on the API's objects themselves.
func (r *run) Core() time.Duration { return 0 }

// Outcome implements contest.Run.
func (r *run) Outcome() outcome.Outcome {
	out := outcome.Outcome{Hosts: make(map[string][]string)}
	zones, terms := r.workload.Domains()
	for _, claim := range r.results.NewNodeClaims {
		n := outcome.Node{Pool: claim.NodePoolName, Pods: uids(claim.Pods)}
		for _, t := range claim.InstanceTypeOptions {
			n.Types = append(n.Types, t.Name)
		}
		for _, zone := range zones {
			if claim.Requirements.Get(corev1.LabelTopologyZone).Has(zone) {
				n.Zones = append(n.Zones, zone)
			}
		}
		for _, term := range terms {
			if claim.Requirements.Get(peerv1.CapacityTypeLabelKey).Has(term) {
				n.Terms = append(n.Terms, term)
			}
		}
		out.New = append(out.New, n)
	}
	for _, n := range r.results.ExistingNodes {
		if len(n.Pods) > 0 {
			out.Hosts[n.Name()] = uids(n.Pods)
		}
	}
	for p := range r.results.PodErrors {
		out.Unplaced = append(out.Unplaced, string(p.UID))
	}
	return out
}

func uids(pods []*corev1.Pod) []string {
	out := make([]string, len(pods))
	for i, p := range pods {
		out[i] = string(p.UID)
	}
	return out
}
