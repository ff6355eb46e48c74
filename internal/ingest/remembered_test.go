package ingest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// gist is where every pod of a placement goes.
func gist(p *schedule.Placement) string {
	var out []string
	for _, a := range p.Assigned {
		out = append(out, a.Pod.UID+" to "+a.Host)
	}
	for i := range p.Bins {
		var ids []string
		for _, q := range p.Bins[i].Pods {
			ids = append(ids, q.UID)
		}
		slices.Sort(ids)
		out = append(out, "new for "+strings.Join(ids, ",")+": "+p.Bins[i].Requirements.String())
	}
	for _, u := range p.Unplaced {
		out = append(out, u.Pod.UID+" nowhere")
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// drama is a cluster to which things happen by chance.
type drama struct {
	r      *rand.Rand
	b      *Book
	clock  *clock
	pods   map[string]*corev1.Pod
	nodes  map[string]bool
	before *plan.Plan
	trail  []string
}

// What the last plan knows may spare work but never changes the next one, whatever happens in between.
func TestRememberingChangesNothing(t *testing.T) {
	provisioned := 0
	for seed := range 300 {
		d := newDrama(int64(seed))
		for step := range 40 {
			d.happen(step)
			s := d.b.Snapshot()
			p, fresh := plan.Make(s, plan.Policy{}, d.before, nil), plan.Make(s, plan.Policy{}, nil, nil)
			if !p.Provisioned {
				continue
			}
			provisioned++
			if got, want := gist(&p.Placement), gist(&fresh.Placement); got != want {
				t.Fatalf("seed %d, after\n%s\nwith the last plan:\n%s\nwithout:\n%s", seed, strings.Join(d.trail, "\n"),
					got, want)
			}
			d.before = &p
		}
	}
	if provisioned < 3000 {
		t.Errorf("only %d plans placed pods", provisioned)
	}
}

func newDrama(seed int64) *drama {
	b, c := bookWithPools("default")
	d := &drama{r: rand.New(rand.NewSource(seed)), b: b, clock: c, pods: map[string]*corev1.Pod{},
		nodes: map[string]bool{}}
	var types []*cloudprovider.InstanceType
	for _, cpu := range []string{"2", "4"} {
		kind := &cloudprovider.InstanceType{Name: "t" + cpu,
			Labels: map[string][]string{cluster.InstanceTypeLabel: {"t" + cpu}},
			Capacity: corev1.ResourceList{"cpu": apiresource.MustParse(cpu), "memory": apiresource.MustParse("8Gi"),
				"pods": apiresource.MustParse("20")}}
		for _, zone := range []string{"a", "b"} {
			kind.Offerings = append(kind.Offerings, cloudprovider.Offering{Price: 1, Available: true,
				Labels: map[string]string{cluster.ZoneLabel: zone, cluster.CapacityTypeLabel: "on-demand"}})
		}
		types = append(types, kind)
	}
	b.setCatalog("default", 1, types, nil)
	d.setPool()
	return d
}

func (d *drama) note(format string, args ...any) {
	d.trail = append(d.trail, fmt.Sprintf(format, args...))
}

func (d *drama) setPool() {
	p := pool("default")
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
		Name: "default"}
	if d.r.Intn(3) > 0 {
		p.Spec.Limits = corev1.ResourceList{"cpu": apiresource.MustParse(fmt.Sprint(2 * d.r.Intn(5)))}
	}
	p.Generation = int64(d.r.Intn(1000))
	d.b.SetPool(p)
	d.note("the pool has limits %v", p.Spec.Limits)
}

// happen lets one thing happen.
func (d *drama) happen(step int) {
	switch k := d.r.Intn(12); {
	case k < 4:
		d.addPod(step)
	case k == 4 && len(d.pods) > 0:
		uid := slices.Sorted(maps.Keys(d.pods))[d.r.Intn(len(d.pods))]
		d.note("%s goes", uid)
		d.b.DeletePod(d.pods[uid])
		delete(d.pods, uid)
	case k == 5 && len(d.pods) > 0 && len(d.nodes) > 0:
		uid := slices.Sorted(maps.Keys(d.pods))[d.r.Intn(len(d.pods))]
		if p := d.pods[uid].DeepCopy(); p.Spec.NodeName == "" {
			p.Spec.NodeName, p.Status.Conditions = slices.Sorted(maps.Keys(d.nodes))[0], nil
			d.pods[uid] = p
			d.b.SetPod(p)
			d.note("%s is bound to %s", uid, p.Spec.NodeName)
		}
	case k == 6:
		d.turnNode(fmt.Sprintf("n%d", d.r.Intn(3)))
	case k == 7:
		d.setPool()
	case k == 8:
		d.clock.tick(time.Duration(d.r.Intn(240)) * time.Second)
		d.note("time passes")
	case k == 9:
		out := command.UnavailableOffering{Type: []string{"t2", "t4"}[d.r.Intn(2)],
			Zone: []string{"a", "b"}[d.r.Intn(2)], CapacityType: "on-demand"}
		d.b.Record(command.Outcome{Command: command.LaunchInstance{Claim: "x"}, At: d.b.now(),
			Unavailable: []command.UnavailableOffering{out}})
		d.note("%v is sold out", out)
	case k == 10 && d.before != nil:
		d.begin()
	}
}

func (d *drama) addPod(step int) {
	uid, owns := fmt.Sprintf("p%02d", step), true
	p := judgedPod(uid)
	p.OwnerReferences = []metav1.OwnerReference{{UID: "o", Kind: "ReplicaSet", Controller: &owns}}
	cpu := apiresource.MustParse(fmt.Sprint(1 + d.r.Intn(4)))
	p.Spec.Containers = []corev1.Container{{
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": cpu}},
	}}
	priority := int32(d.r.Intn(2) * 100)
	p.Spec.Priority = &priority
	if d.r.Intn(3) == 0 {
		p.Spec.NodeSelector = map[string]string{cluster.ZoneLabel: []string{"a", "b"}[d.r.Intn(2)]}
	}
	d.pods[uid] = p
	d.b.SetPod(p)
	d.note("%s comes: cpu %s, priority %d, %v", uid, cpu.String(), priority, p.Spec.NodeSelector)
}

// turnNode makes a node come, or go if it is there.
func (d *drama) turnNode(name string) {
	if d.nodes[name] {
		delete(d.nodes, name)
		d.b.DeleteNode(name)
		d.note("node %s goes", name)
		return
	}
	d.nodes[name] = true
	d.b.SetNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cluster.ZoneLabel: "a",
			cluster.HostnameLabel: name}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"cpu": apiresource.MustParse("2"), "memory": apiresource.MustParse("8Gi"),
			"pods": apiresource.MustParse("20")}},
	})
	d.note("node %s comes", name)
}

// begin starts one of the last plan's claims, which may fail.
func (d *drama) begin() {
	for _, c := range d.before.Commands {
		create, ok := c.(command.CreateClaim)
		if !ok || d.r.Intn(2) == 0 || d.b.claims[create.Name] != nil || d.b.commands.Has(create.Key()) {
			continue
		}
		d.b.Begin(c)
		d.note("claim %s is asked for", create.Name)
		if d.r.Intn(2) == 0 {
			d.b.Record(command.Outcome{Command: c, At: d.b.now(), Err: errors.New("no")})
			d.note("and fails")
		}
		return
	}
}
