package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/schedule"
)

const (
	// nearTheBest is how much more than packed anew a cluster that has come to rest may cost without a reason, and
	// farthest how much with one. Of the draws 100 to 125, 17 came to less than 1.10, and the worst to 1.615, where
	// spot nodes would be replaced by spot nodes.
	nearTheBest, farthest = 1.05, 1.7
	// restsFor is how long nothing must have been asked for: a pod that was moved twice may be moved again an hour
	// later.
	restsFor = 70 * time.Minute
)

// TestSpreadWorkloadComesToRest: a pool of spot nodes of the families c, m and r with 2 to 16 CPUs and minValues 2, and
// a workload that is spread over zones. It is scaled from 12 to 30, 60 and 20 replicas; in between the controller is
// started anew, all nodes drift, and a node dies. At rest it costs what it would cost if it were packed anew, or each
// node that a cheaper one of its zone could take the place of has a reason that names the rule which keeps it.
//
//	go test ./internal/sim -run TestSpreadWorkloadComesToRest -from 100 -seeds 50
func TestSpreadWorkloadComesToRest(t *testing.T) {
	f := flags()
	// In the last three the price of one node would pay for several smaller ones, but for a rule: each node said that
	// nothing was cheaper once.
	seeds := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 110, 117, 119}
	if f.asked["seeds"] {
		seeds = nil
		for seed := f.from; seed < f.from+f.seeds; seed++ {
			seeds = append(seeds, seed)
		}
	}
	sum, worst := 0.0, 0.0
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			ratio := playSpread(t, seed)
			sum, worst = sum+ratio, max(worst, ratio)
		})
	}
	t.Logf("at rest it costs %.3f times what it would cost anew, at most %.3f times", sum/float64(len(seeds)), worst)
}

func playSpread(t *testing.T, seed uint64) float64 {
	s := spreadWorld(seed)
	defer func() {
		for len(s.replicas) > 0 {
			s.replicas[0].kill()
		}
	}()
	set := list[*appsv1.ReplicaSet](s.store, sets)[0]
	s.start()
	for _, next := range []func(){
		func() { s.scaleTo(set, 30) }, s.crash, func() { s.scaleTo(set, 60) }, s.newImage, s.killMachine,
		func() { s.scaleTo(set, 20) },
	} {
		s.clock.runUntil(s.clock.now.Add(s.clock.between(time.Minute, 15*time.Minute)), s.over)
		next()
	}
	begin := s.clock.now
	for s.failure == nil && s.clock.now.Sub(s.busyAt) < restsFor && s.clock.now.Sub(begin) < 12*time.Hour {
		s.clock.runUntil(s.clock.now.Add(time.Minute), s.over)
	}
	if s.failure != nil {
		t.Fatal(s.failure)
	}
	if s.clock.now.Sub(s.busyAt) < restsFor || running(s, "web") != 20 {
		t.Fatalf("after 12 hours %d of 20 pods run, and a plan asked for %s", running(s, "web"), s.busyWith)
	}
	fresh, cost := packedAnew(s.leader().book.Snapshot()), 0.0
	for _, m := range s.cloud.machines {
		cost += s.machinePrice(m)
	}
	ratio := cost / fresh.Price
	t.Logf("at rest after %s: %d nodes for %.4f an hour; packed anew %d for %.4f",
		s.busyAt.Sub(begin).Round(time.Second), len(s.cloud.machines), cost, len(fresh.Bins), fresh.Price)
	if ratio > farthest {
		t.Errorf("the cluster rests at %.3f times what it would cost anew, want at most %.2f", ratio, farthest)
	}
	if ratio > nearTheBest && explained(t, s, &set.Spec.Template.Spec) == 0 {
		t.Errorf("the cluster rests at %.3f times what it would cost anew, and no rule says why", ratio)
	}
	return ratio
}

// explained: each node whose pods a cheaper one of its zone would take has a reason that names a rule, and so has one
// of each two nodes of a zone whose pods would. It counts the nodes that a rule keeps.
func explained(t *testing.T, s *Sim, pod *corev1.PodSpec) int {
	rules := []disrupt.BlockReason{disrupt.PodsStranded, disrupt.SpotNeedsTypes, disrupt.MinValuesTooDear,
		disrupt.SavesTooLittle}
	stays, kept := s.leader().found.Blocked, 0
	var unruled []*machine
	for _, m := range s.cloud.machines {
		price := s.machinePrice(m)
		i := slices.IndexFunc(stays, func(st disrupt.BlockedNode) bool { return st.Node == m.node })
		if i >= 0 && slices.Contains(rules, stays[i].Reason) {
			t.Logf("%s (%s, %.4f an hour) stays: %s", m.node, m.instance.Type, price, stays[i].Reason)
			kept++
			continue
		}
		if best := s.cheapestFor(pod, len(s.tenantsOn(m.node)),
			m); best < price*(1-s.policy.Disrupt.MinSaving)-rounding {
			t.Errorf("%s (%s, %.4f an hour) stays although one for %.4f would do, and nothing says which rule keeps "+
				"it: %+v",
				m.node, m.instance.Type, price, best, stays)
		}
		for _, other := range unruled {
			if other.instance.Labels[corev1.LabelTopologyZone] != m.instance.Labels[corev1.LabelTopologyZone] {
				continue
			}
			both, count := price+s.machinePrice(other), len(s.tenantsOn(m.node))+len(s.tenantsOn(other.node))
			if best := s.cheapestFor(pod, count, m); best < both*(1-s.policy.Disrupt.MinSaving)-rounding {
				t.Errorf("%s and %s (%.4f an hour) stay although one for %.4f would do, and nothing says which rule "+
					"keeps them: %+v",
					m.node, other.node, both, best, stays)
			}
		}
		unruled = append(unruled, m)
	}
	return kept
}

// cheapestFor is what the cheapest machine costs that takes so many pods where the machine is.
func (s *Sim) cheapestFor(pod *corev1.PodSpec, count int, m *machine) float64 {
	best := math.Inf(1)
	for _, t := range s.cloud.types {
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if o.Labels[corev1.LabelTopologyZone] == m.instance.Labels[corev1.LabelTopologyZone] &&
				machineShare(t, pod) >= count {
				best = min(best, o.Price)
			}
		}
	}
	return best
}

// packedAnew is what the pods would cost if there were no nodes.
func packedAnew(now *cluster.Snapshot) schedule.Placement {
	out := &cluster.Snapshot{Now: now.Now, Names: now.Names, Pools: now.Pools, Daemons: now.Daemons, Owners: now.Owners,
		Namespaces: now.Namespaces}
	for _, p := range now.Pods {
		q := *p
		q.Node, q.Nominated, q.Unschedulable = "", "", true
		out.Pods = append(out.Pods, &q)
	}
	return schedule.Place(out.Seal().SchedulerView(), schedule.Settings{})
}

// spreadWorld has the pool and the workload. Settings are those that the program has unless it is told otherwise, with
// spot nodes in place of spot nodes.
func spreadWorld(seed uint64) *Sim {
	s := newSim(seed, Options{})
	c := s.clock
	s.policy.Placement, s.policy.Repair = plan.PlaceByNomination, disrupt.RepairSettings{}
	s.policy.Disrupt = disrupt.Settings{MinSaving: 0.05, MinSavingPerPod: 0.0001, EvictionsPerHour: evictionsPerHour,
		BalancedK:  2,
		SpotToSpot: true, SpotTypes: 15, ReplacementTimeout: 10 * time.Minute, DriftWatch: 10 * time.Minute}
	s.cloud.types = spotRegion(rand.New(rand.NewPCG(seed, 12)))
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "spot"}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: classGroup, Kind: classKind, Name: className}
	pool.Spec.Template.Spec.ExpireAfter = v1.NeverDuration()
	two := 2
	pool.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
		{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{v1.CapacityTypeSpot}},
		{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpExists, MinValues: &two},
	}
	pool.Spec.Disruption = v1.Disruption{ConsolidationPolicy: v1.ConsolidationPolicyWhenEmptyOrUnderutilized,
		ConsolidateAfter: lasting(30 * time.Second), Budgets: []v1.Budget{{Nodes: "100%"}}}
	s.store.create(pool)
	replicas, grace := int32(12), int64(5)
	app := map[string]string{"app": "web"}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	set.Spec.Replicas, set.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: app}
	pod := &set.Spec.Template
	pod.Labels, pod.Annotations, pod.Spec.TerminationGracePeriodSeconds = app, map[string]string{}, &grace
	tenths := int64(c.number(2, 10))
	pod.Spec.Containers = []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *apiresource.NewMilliQuantity(tenths*100, apiresource.DecimalSI),
			corev1.ResourceMemory: *apiresource.NewQuantity(tenths*100*int64(c.number(1, 4))<<20, apiresource.BinarySI),
		}}}}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
		TopologyKey:       corev1.LabelTopologyZone,
		WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: app}}}
	s.store.create(set)
	return s
}

// spotRegion sells ten families in four sizes and three zones, for spot prices that are drawn.
func spotRegion(r *rand.Rand) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	for _, f := range []struct {
		name   string
		memory int
		price  float64
	}{{"c6a", 2, 0.0383}, {"c6i", 2, 0.0425}, {"c7i", 2, 0.0446}, {"c7a", 2, 0.0513}, {"m6a", 4, 0.0432},
		{"m6i", 4, 0.048}, {"m7i", 4, 0.0504},
		{"m7i-flex", 4, 0.0479}, {"r6a", 8, 0.0567}, {"r6i", 8, 0.063}} {
		discount := 0.3 + 0.2*r.Float64()
		for cores, size := 2, 0; size < 4; cores, size = 2*cores, size+1 {
			t := machineType(f.name+"."+[]string{"large", "xlarge", "2xlarge", "4xlarge"}[size], fmt.Sprint(cores),
				fmt.Sprintf("%dGi", cores*f.memory), 0)
			t.Capacity[corev1.ResourcePods] = apiresource.MustParse("58")
			t.Offerings = nil
			for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
				t.Offerings = append(t.Offerings, cloudprovider.Offering{Available: true,
					Price: math.Round(f.price*float64(cores)*discount*(0.9+0.2*r.Float64())*1e4) / 1e4,
					Labels: map[string]string{corev1.LabelTopologyZone: zone,
						v1.CapacityTypeLabelKey: v1.CapacityTypeSpot}})
			}
			out = append(out, t)
		}
	}
	return out
}
