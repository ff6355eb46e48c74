package disrupttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// FleetOf reads a cluster from a line of text: nodes, and then, each after a semicolon, what is special about them.
//
// A node is its type, its zone and capacity type if these are not a and on-demand, and the CPUs that each of its
// pods asks for, as in "large:1,2" or "small/b/spot:1". Nodes are n1, n2 and so on, pods p1, p2 and so on. The cloud
// sells small (2 CPUs, $1), medium (4, $2), large (8, $4) and huge (16, $6) in zones a and b; spot nodes cost 30 % of
// that in zone a and 40 % in zone b.
func FleetOf(line string) *Fleet {
	f := NewFleet()
	f.S.Claims, f.S.Nodes, f.S.Pods, f.S.EvictedToSave, f.S.EvictionsDropAt = nil, nil, nil, map[string]int{},
		map[string]time.Time{}
	sells(f)
	parts := strings.Split(line, ";")
	for i, word := range strings.Fields(parts[0]) {
		what, load, _ := strings.Cut(word, ":")
		kind, where, _ := strings.Cut(what, "/")
		name := fmt.Sprint("n", i+1)
		f.Node(name, kind)
		f.is(name, strings.Split(where, "/"))
		for cpu := range strings.SplitSeq(load, ",") {
			if n, err := strconv.Atoi(cpu); err == nil {
				f.Run(fmt.Sprint("p", len(f.S.Pods)+1), name, n)
			}
		}
	}
	for _, part := range parts[1:] {
		f.make(strings.Fields(part))
	}
	return f
}

// sells has the cloud sell more, and the pool buy on demand.
func sells(f *Fleet) {
	var types []cluster.Type
	var offers []cluster.Offering
	for i, price := range []float64{1, 2, 4, 6} {
		name := []string{"small", "medium", "large", "huge"}[i]
		room := resource.Vector{resource.CPU: 2000 << i, resource.Memory: 64 << 30, resource.Pods: 110}
		types = append(types, cluster.Type{Name: name, Capacity: room, Allocatable: room})
		for _, zone := range []string{"a", "b"} {
			offers = append(offers, Offering(i, name, zone, disrupt.OnDemand, price),
				Offering(i, name, zone, disrupt.Spot, price*map[string]float64{"a": 0.3, "b": 0.4}[zone]))
		}
	}
	f.Pool.Catalog = cluster.NewCatalog(types, offers)
	f.Pool.Template.Requirements = require.Set{}.With(cluster.CapacityTypeLabel, require.Only(disrupt.OnDemand))
}

// is moves a node to another zone or capacity type.
func (f *Fleet) is(name string, words []string) {
	c, n := f.Claim(name), f.Host(name)
	for _, word := range words {
		switch word {
		case "a", "b":
			c.Labels, n.Labels = c.Labels.With(cluster.ZoneLabel, word), n.Labels.With(cluster.ZoneLabel, word)
		case disrupt.Spot:
			c.Labels = c.Labels.With(cluster.CapacityTypeLabel, disrupt.Spot)
			n.Labels = n.Labels.With(cluster.CapacityTypeLabel, disrupt.Spot)
		}
	}
	label := func(key string) string {
		value, _ := c.Labels.Get(key)
		return value
	}
	kind, zone, terms := label(cluster.InstanceTypeLabel), label(cluster.ZoneLabel), label(cluster.CapacityTypeLabel)
	c.Price, _ = f.Pool.Catalog.Price(kind, zone, terms)
}

// make does what some words say: of a node, of a pod, of all pods, of another pool, or of everything.
func (f *Fleet) make(words []string) {
	who, what := words[0], strings.Join(words[1:], " ")
	key, value, _ := strings.Cut(what, " ")
	number, _ := strconv.ParseFloat(value, 64)
	switch who[0] {
	case 'n':
		f.makeNode(who, key, value)
	case 'p', 'w': // a pod that runs or waits
		if who == "pods" {
			for _, p := range f.S.Pods {
				f.MakePod(p, key, value)
			}
		} else {
			f.MakePod(f.Pod(who), key, value)
		}
	case 'b', 'c': // another pool
		f.makePool(f.PoolOf(who), key, value, number)
	default:
		f.makePool(f.Pool, key, value, number)
	}
}

// PoolOf is the pool of that name, made as a copy of the first one if it is not there.
func (f *Fleet) PoolOf(name string) *cluster.Pool {
	if i := slices.IndexFunc(f.S.Pools, func(p *cluster.Pool) bool { return p.Name == name }); i >= 0 {
		return f.S.Pools[i]
	}
	p := *f.Pool
	p.Name, p.UID = name, "pool-"+name
	f.S.Pools = append(f.S.Pools, &p)
	return &p
}

func (f *Fleet) makeNode(name, key, value string) {
	if key == "waits" { // a pod that waits for a place
		cpu, _ := strconv.Atoi(value)
		f.Run("w"+name[1:], "", cpu)
		return
	}
	c, n := f.Claim(name), f.Host(name)
	switch key {
	case "of":
		p := f.PoolOf(value)
		c.Pool, n.Labels = p.Name, n.Labels.With(cluster.PoolLabel, p.Name)
	case "absent":
		f.S.Nodes = slices.DeleteFunc(f.S.Nodes, func(x *cluster.Node) bool { return x == n })
	case "foreign", "orphaned": // of others, or of ours without a claim
		f.S.Claims = slices.DeleteFunc(f.S.Claims, func(x *cluster.Claim) bool { return x == c })
		n.Ours = key == "orphaned"
	case "unready":
		n.Ready = false
	case "joining":
		c.Conditions = c.Conditions[:2]
		n.Labels = n.Labels.With(cluster.InitializedLabel, "")
	case "protected":
		n.DoNotDisrupt = true
	case "deleted":
		c.Deleting = f.Now
	case "node-deleted":
		n.Deleting = f.Now
	case "namesake": // a claim that is being deleted and has no node is called like the node of this one
		c.Name = "of-" + name
		f.S.Claims = append(f.S.Claims, &cluster.Claim{Name: name, UID: "uid-other", Pool: c.Pool, Created: c.Created,
			Deleting: f.Now})
	case "fenced":
		f.Fenced(command.Reason(value), name)
	case "tainted":
		n.Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
	case "busy":
		f.S.InFlight["fence/"+name] = true
	case "stirred": // a pod came or went a while ago
		d, _ := time.ParseDuration(value)
		c.LastPodEvent = f.Now.Add(-d)
	case "made": // for a move, and no pod has come
		c.Replaces, c.LastPodEvent = value, time.Time{}
	case "expects": // a pod
		p := f.Run("e"+name[1:], "", 1)
		p.Nominated, p.Unschedulable, p.SchedulerSeen = name, false, false
	}
}

// MakePod does what some words say of a pod.
func (f *Fleet) MakePod(p *cluster.Pod, key, value string) {
	class := *p.Class
	class.Key += key + value
	rule := &cluster.Rule{Key: key, TopologyKey: cluster.ZoneLabel, MaxSkew: 1, Selectors: []cluster.Selector{{
		Namespaces: []string{"shop"}, Labels: require.Set{}.With("app", require.Only("web"))}}}
	switch key {
	case "in":
		class.Terms = []require.Set{require.Set{}.With(cluster.ZoneLabel, require.Only(value))}
	case "need":
		class.Terms = []require.Set{require.Set{}.With(cluster.PoolLabel, require.Only(value))}
	case "reserved":
		class.Terms = []require.Set{require.Set{}.With(cluster.CapacityTypeLabel,
			require.Only(disrupt.CapacityReserved))}
	case "spread":
		// over the zones; with a number over at least so many, with a letter among the pods of that revision only
		if n, err := strconv.Atoi(value); err == nil {
			rule.MinDomains = n
		} else if value != "" {
			p.Labels = p.Labels.With("pod-template-hash", value)
			rule.Selectors[0].Labels = rule.Selectors[0].Labels.With("pod-template-hash", require.Only(value))
		}
		rule.Key += value
		class.Rules = []*cluster.Rule{rule}
	case "apart":
		rule.Kind, rule.TopologyKey = cluster.AntiAffinity, cluster.HostnameLabel
		class.Rules = []*cluster.Rule{rule}
	case "together":
		rule.Kind = cluster.Affinity
		class.Rules = []*cluster.Rule{rule}
	case "asks": // so many things of pods of any label
		n, _ := strconv.Atoi(value)
		for i := range n {
			r := *rule
			r.Key, r.TopologyKey, r.Kind = fmt.Sprint("wide", i), cluster.HostnameLabel, cluster.AntiAffinity
			r.Selectors = []cluster.Selector{{Namespaces: []string{"nowhere"}}}
			class.Rules = append(class.Rules, &r)
		}
	case "cost":
		p.EvictionCost, _ = strconv.ParseFloat(value, 64)
	case "owner":
		p.Owner = value
	case "protected":
		p.DoNotDisrupt = true
	case "unsupported":
		class.Unsupported = append(class.Unsupported, value)
	case "tolerates": // the taint of nodes that go
		class.Tolerations, p.StaysThroughDrain = []cluster.Toleration{{Exists: true}}, true
	case "daemon":
		p.Daemon = true
	}
	p.Class = &class
}

func (f *Fleet) makePool(p *cluster.Pool, key, value string, number float64) {
	n := int(number)
	switch key {
	case "dry":
		p.Overrides.DryRun = true
	case "budget":
		p.Budgets = []cluster.Budget{{Nodes: n, Active: true}}
	case "changes":
		d, _ := time.ParseDuration(value)
		p.Budgets = append(slices.Clone(p.Budgets), cluster.Budget{Nodes: 100, ChangesAt: f.Now.Add(d)})
	case "after":
		d, _ := time.ParseDuration(value)
		p.ConsolidateAfter = cluster.NillableDuration{For: d}
	case "balanced":
		p.Policy = cluster.Balanced
		f.Set.BalancedK = number
	case "saving":
		f.Set.MinSaving = number
	case "own-saving":
		p.Overrides.MinSaving = &number
	case "per-pod":
		f.Set.MinSavingPerPod = number
	case "own-per-pod":
		p.Overrides.MinSavingPerPod = &number
	case "evictions":
		p.Overrides.EvictionsPerHour = &n
	case "evicted":
		f.S.EvictedToSave["web"], f.S.EvictionsDropAt["web"] = n, f.Now.Add(20*time.Minute)
	case "any":
		p.Template.Requirements = require.Set{}
	case "min":
		p.Template.Requirements = p.Template.Requirements.WithMin(cluster.InstanceTypeLabel, n)
	case "reserves": // so many large nodes in zone a
		o := Offering(slices.IndexFunc(p.Catalog.Types, func(t cluster.Type) bool {
			return t.Name == "large"
		}), "large", "a", disrupt.CapacityReserved, 0)
		o.Reservation, o.ReservationLeft = "cr", n
		p.Catalog = cluster.NewCatalog(p.Catalog.Types, append(slices.Clone(p.Catalog.Offerings), o))
	case "steps": // a search may take
		f.Steps = n
	case "spot-to-spot":
		f.Set.SpotToSpot, f.Set.SpotTypes = true, n
	}
}
