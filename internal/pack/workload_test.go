package pack_test

import (
	"math"
	"math/rand"
	"slices"
	"sync"

	"github.com/tenon-sh/tenon/cloudprovider/kwok/catalog"
	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// gpu is the dimension of the graphics cards in the workloads.
const gpu = 4

// shop is the EC2 catalog as bin types, with what each bin type is called by.
type shop struct {
	offers      []pack.BinType
	arch, zone  []string
	spot, cards []bool
}

// ec2 reads the catalog once for all tests.
var ec2 = sync.OnceValue(func() *shop {
	types, err := catalog.Default()
	if err != nil {
		panic(err)
	}
	s := &shop{}
	for _, t := range types {
		o := pack.BinType{Reservation: -1}
		have := t.Allocatable()
		o.Room[resource.CPU], o.Room[resource.Memory] = have.Cpu().MilliValue(), have.Memory().Value()
		o.Room[resource.Pods], o.Room[resource.Storage] = have.Pods().Value(), have.StorageEphemeral().Value()
		for name, amount := range have {
			if name == "nvidia.com/gpu" {
				o.Room[gpu] = amount.Value()
			}
		}
		o.Charge[resource.CPU], o.Charge[resource.Memory] = t.Capacity.Cpu().MilliValue(), t.Capacity.Memory().Value()
		for _, offering := range t.Offerings {
			o.Price = offering.Price
			s.offers = append(s.offers, o)
			s.arch = append(s.arch, t.Labels["kubernetes.io/arch"][0])
			s.zone = append(s.zone, offering.Labels["topology.kubernetes.io/zone"])
			s.spot = append(s.spot, offering.Labels["karpenter.sh/capacity-type"] == "spot")
			s.cards = append(s.cards, len(have) > 4)
		}
	}
	return s
})

// want is what a deployment asks of its nodes; empty means anything.
type want struct {
	arch, zone string
	onDemand   bool
}

// desk collects sets by what they want.
type desk struct {
	p     *pack.Problem
	sites map[want]int
}

func newDesk() *desk {
	return &desk{p: &pack.Problem{BinTypes: ec2().offers, Limits: []pack.Limit{{Nodes: -1}}}, sites: map[want]int{}}
}

func (d *desk) site(w want) int {
	if i, ok := d.sites[w]; ok {
		return i
	}
	b := require.NewBits(len(d.p.BinTypes))
	for o := range d.p.BinTypes {
		if (w.arch == "" || w.arch == ec2().arch[o]) && (w.zone == "" || w.zone == ec2().zone[o]) &&
			!(w.onDemand && ec2().spot[o]) {
			b.Set(o)
		}
	}
	d.p.FeasibleSets = append(d.p.FeasibleSets, b)
	d.sites[w] = len(d.p.FeasibleSets) - 1
	return d.sites[w]
}

func (d *desk) add(cpu, memory int64, count int, w want) *pack.Item {
	s := pack.Item{Count: count, Preference: -1, Feasible: d.site(w)}
	s.Unrestricted = s.Feasible
	s.Need[resource.CPU], s.Need[resource.Memory], s.Need[resource.Pods] = cpu, memory, 1
	d.p.Items = append(d.p.Items, s)
	return &d.p.Items[len(d.p.Items)-1]
}

// heavyTail draws sizes of deployments until there are n pods.
func heavyTail(r *rand.Rand, n, deployments int, each func(count int)) {
	weights, sum := make([]float64, deployments), 0.0
	for i := range weights {
		weights[i] = math.Pow(r.Float64()+1e-3, -0.9)
		sum += weights[i]
	}
	left := n
	for i, w := range weights {
		count := min(left, max(1, int(float64(n)*w/sum)))
		if i == deployments-1 {
			count = left
		}
		if count > 0 {
			each(count)
			left -= count
		}
	}
}

func steps(r *rand.Rand, median, sigma float64, unit int64) int64 {
	return max(1, int64(math.Round(median*math.Exp(sigma*r.NormFloat64())/float64(unit)))) * unit
}

// fleet is a cluster of deployments as they are found; perCore is the median memory to a core.
func fleet(seed int64, n, deployments int, perCore float64) *pack.Problem {
	r := rand.New(rand.NewSource(seed))
	d := newDesk()
	zones := []string{"", "", "", "a", "b", "c"}
	heavyTail(r, n, deployments, func(count int) {
		cpu := steps(r, 400, 0.9, 50)
		memory := steps(r, float64(cpu)/1000*perCore*(1<<30), 0.7, 64<<20)
		w := want{arch: "amd64", onDemand: r.Intn(3) == 0}
		if z := zones[r.Intn(len(zones))]; z != "" {
			w.zone = ec2().zone[0][:len(ec2().zone[0])-1] + z
		}
		if r.Intn(4) == 0 {
			w.arch = ""
		}
		d.add(cpu, memory, count, w)
	})
	return d.p
}

// plainFleet has no preferences for its nodes but amd64 and on-demand.
func plainFleet(seed int64, n, deployments int) *pack.Problem {
	p := fleet(seed, n, deployments, 4)
	d := &desk{p: p, sites: map[want]int{}}
	at := d.site(want{arch: "amd64", onDemand: true})
	for i := range p.Items {
		p.Items[i].Feasible, p.Items[i].Unrestricted = at, at
	}
	return p
}

// gpuMix is a fleet of which a tenth asks for cards.
func gpuMix(seed int64, n int) *pack.Problem {
	p := fleet(seed, n, max(30, n/20), 4)
	r := rand.New(rand.NewSource(seed))
	for i := range p.Items {
		if r.Intn(10) == 0 {
			s := &p.Items[i]
			s.Need[gpu] = []int64{1, 1, 1, 2, 4, 8}[r.Intn(6)]
			s.Need[resource.CPU], s.Need[resource.Memory] = s.Need[gpu]*int64(1+r.Intn(6))*1000,
				s.Need[gpu]*int64(4+r.Intn(24))<<30
			s.Count = min(s.Count, 40)
		}
	}
	return p
}

// diverse is a fifth each of plain pods, zone spread, host spread, zone affinity and host anti-affinity, in seven
// kinds.
func diverse(seed int64, n int) *pack.Problem {
	r := rand.New(rand.NewSource(seed))
	d := newDesk()
	type key struct {
		cpu, memory int64
		kind, label int
		zone        string
	}
	counts := map[key]int{}
	var order []key
	zones := slices.Compact(slices.Sorted(slices.Values(ec2().zone)))
	for i := range n {
		k := key{cpu: []int64{100, 250, 500, 1000, 1500}[r.Intn(5)], memory: []int64{100, 256, 512, 1024, 2048,
			4096}[r.Intn(6)] << 20}
		k.kind, k.label = i%5, r.Intn(7)
		switch k.kind {
		case 1:
			k.zone = zones[r.Intn(3)]
		case 3:
			k.zone = zones[k.label%3]
		}
		if k.kind == 0 || k.kind == 1 || k.kind == 3 {
			k.label = 0
		}
		if counts[k] == 0 {
			order = append(order, k)
		}
		counts[k]++
	}
	for _, k := range order {
		s := d.add(k.cpu, k.memory, counts[k], want{zone: k.zone})
		s.Unrestricted = d.site(want{})
		s = &d.p.Items[len(d.p.Items)-1]
		id := int32(k.label)
		switch k.kind {
		case 2:
			s.Caps, s.Counts = []pack.Cap{{ID: id, Most: 1 + int32(n/1000)}}, []int32{id}
		case 4:
			s.Excludes, s.ExcludedAs = []int32{7 + id}, []int32{7 + id}
		}
	}
	return d.p
}
