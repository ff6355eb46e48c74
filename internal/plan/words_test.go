package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// amount reads 500m, 2, 4Gi or 512Mi in the unit of the dimension.
func (n *storyRunner) amount(dim int, text string) int64 {
	scale := int64(1)
	for suffix, size := range map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, scale = rest, size
		}
	}
	if dim == resource.CPU {
		if rest, ok := strings.CutSuffix(text, "m"); ok {
			text = rest
		} else {
			scale = 1000
		}
	}
	return int64(n.integer(text)) * scale
}

// price reads dollars.
func (n *storyRunner) price(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		n.fail("%v", err)
	}
	return f
}

// resourceWord takes cpu=2, memory=4Gi, example.com/gpu=1 and the like; it is false for other words.
func (n *storyRunner) resourceWord(v *resource.Vector, key, value string) bool {
	dim, ok := n.w.names.Lookup(key)
	if !ok {
		if !strings.HasPrefix(key, "example.com/") {
			return false
		}
		if dim, ok = n.w.names.Index(key); !ok {
			n.fail("no room for resource %s", key)
		}
	}
	v[dim] = n.amount(dim, value)
	return true
}

// addType: type NAME cpu= memory= price= [spot=PRICE] [zones=a,b] [os=linux,windows] [label=key=value]
// [attach.DRIVER=2] [reserved=ID:COUNT] [estimated]. Allocatable equals capacity; a driver without a limit attaches
// what it is asked to.
func (n *storyRunner) addType(name string, words []string) {
	t := typeWords{Type: cluster.Type{Name: name}}
	t.Capacity[resource.Pods] = 110
	prices, zones := map[string]float64{}, []string{"a", "b"}
	labels := cluster.Labels{}.With(cluster.InstanceTypeLabel, name)
	systems := []string{""}
	var attach resource.Vector
	estimated := false
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case n.resourceWord(&t.Capacity, key, value):
		case strings.HasPrefix(key, "attach."):
			attach[n.attachDim(strings.TrimPrefix(key, "attach."))] = int64(n.integer(value))
		case key == "reserved":
			t.reserved = append(t.reserved, value)
		case key == "price":
			prices["on-demand"] = n.price(value)
		case key == "estimated":
			estimated = true
		case key == "spot":
			prices["spot"] = n.price(value)
		case key == "os":
			systems = strings.Split(value, ",")
		case key == "zones":
			zones = strings.Split(value, ",")
		case key == "label":
			k, v, _ := strings.Cut(value, "=")
			labels = labels.With(k, v)
		default:
			n.fail("type: unknown word %q", word)
		}
	}
	t.Allocatable = t.Capacity.Add(attach)
	n.w.types = append(n.w.types, t.Type)
	for _, system := range systems {
		if system != "" {
			labels = labels.With("os", system)
		}
		n.w.offer(labels, prices, zones)
	}
	for _, word := range t.reserved {
		id, count, _ := strings.Cut(word, ":")
		n.w.reserve(id, n.integer(count), prices["on-demand"]/1e7, labels, zones[0])
	}
	for i := range n.w.offerings {
		if o := &n.w.offerings[i]; o.Type == len(n.w.types)-1 {
			o.Estimated = estimated
		}
	}
}

type typeWords struct {
	cluster.Type
	reserved []string
}

// reservationLabel is how a claim says from which reservation it comes.
const reservationLabel = "example.com/reservation"

// reserve sells a number of the last type in a zone, paid for in advance.
func (w *world) reserve(id string, left int, price float64, labels cluster.Labels, zone string) {
	w.offerings = append(w.offerings, cluster.Offering{
		Type: len(w.types) - 1, Zone: zone, CapacityType: "reserved", Price: price, Available: true, Reservation: id,
		ReservationLeft: left,
		Labels: labels.With(cluster.ZoneLabel, zone).With(cluster.CapacityTypeLabel, "reserved").With(reservationLabel,
			id),
	})
}

// offer sells the last type in each zone under each of the terms that have a price.
func (w *world) offer(labels cluster.Labels, prices map[string]float64, zones []string) {
	for _, zone := range zones {
		for _, terms := range slices.Sorted(maps.Keys(prices)) {
			w.offerings = append(w.offerings, cluster.Offering{
				Type: len(w.types) - 1, Zone: zone, CapacityType: terms, Price: prices[terms], Available: true,
				Labels: labels.With(cluster.ZoneLabel, zone).With(cluster.CapacityTypeLabel, terms),
			})
		}
	}
}

// addPool makes a pool, or changes one that is there.
func (n *storyRunner) addPool(name string, words []string) {
	p := n.w.pools[name]
	if p == nil {
		p = &cluster.Pool{Name: name, UID: "pool-" + name, Policy: cluster.WhenEmpty,
			ConsolidateAfter: cluster.NillableDuration{Never: true},
			NodeClass:        cluster.NodeClassState{Ready: true}}
		n.w.pools[name] = p
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if limit, ok := strings.CutPrefix(key, "limit."); ok {
			n.limit(&p.Limits, limit, value)
			continue
		}
		if !n.templateWord(&p.Template, key, value) && !n.poolWord(p, key, value) {
			n.fail("pool: unknown word %q", word)
		}
	}
}

func (n *storyRunner) limit(l *cluster.Limits, name, value string) {
	if name == "nodes" {
		l.HasNodes, l.Nodes = true, int64(n.integer(value))
		return
	}
	dim, ok := n.w.names.Index(name)
	if !ok {
		n.fail("no room for resource %s", name)
	}
	l.Set[dim], l.Amount[dim] = true, n.amount(dim, value)
}

func (n *storyRunner) templateWord(t *cluster.Template, key, value string) bool {
	switch key {
	case "label":
		k, v, _ := strings.Cut(value, "=")
		t.Labels = t.Labels.With(long(k), v)
	case "require":
		k, values, err := entry(value)
		if err != nil {
			n.fail("%v", err)
		}
		t.Requirements = t.Requirements.With(k, values)
	case "min":
		k, v, _ := strings.Cut(value, ":")
		t.Requirements = t.Requirements.WithMin(long(k), n.integer(v))
	case "taint":
		t.Taints = append(t.Taints, n.taint(value))
	case "startup-taint":
		t.StartupTaints = append(t.StartupTaints, n.taint(value))
	case "grace":
		t.HasTerminationGrace, t.TerminationGrace = true, n.duration(value)
	default:
		return false
	}
	return true
}

func (n *storyRunner) poolWord(p *cluster.Pool, key, value string) bool {
	switch key {
	case "weight":
		p.Weight = int32(n.integer(value))
	case "after":
		p.ConsolidateAfter = cluster.NillableDuration{Never: value == "Never"}
		if value != "Never" {
			p.ConsolidateAfter.For = n.duration(value)
		}
	case "budget":
		p.Budgets = append(p.Budgets, n.budget(value))
	case "no-budgets":
		p.Budgets = nil
	case "static":
		p.Static = true
	case "deleting":
		p.Deleting = true
	case "invalid":
		p.Problems = []cluster.Problem{{Field: "spec.template.spec.requirements[0]", Text: "the operator is not known"}}
	case "class":
		p.NodeClass = cluster.NodeClassState{Ready: value == "ready", Reason: "NodeClassNotReady", Message: value}
	case "catalog-error":
		p.CatalogError = value
	default:
		return n.poolLifeWord(p, key, value)
	}
	return true
}

// budget reads 10%, 1, or 0:Drifted,Empty.
func (n *storyRunner) budget(text string) cluster.Budget {
	amount, reasons, limited := strings.Cut(text, ":")
	number, percent := strings.CutSuffix(amount, "%")
	b := cluster.Budget{Nodes: n.integer(number), Percent: percent, Active: true}
	if limited {
		b.Reasons = strings.Split(reasons, ",")
	}
	return b
}

// taint reads key=value:Effect or key:Effect.
func (n *storyRunner) taint(text string) cluster.Taint {
	head, effect, ok := strings.Cut(text, ":")
	if !ok {
		n.fail("%q is not key=value:Effect", text)
	}
	key, value, _ := strings.Cut(head, "=")
	return cluster.Taint{Key: key, Value: value, Effect: cluster.Effect(effect)}
}

// shapeWord takes the words that say where a pod may run.
func (n *storyRunner) shapeWord(sh *shape, key, value string) bool {
	last := func() *require.Set {
		if len(sh.terms) == 0 {
			sh.terms = []require.Set{nil}
		}
		return &sh.terms[len(sh.terms)-1]
	}
	switch {
	case n.resourceWord(&sh.requests, key, value):
	case key == "need":
		k, values, err := entry(value)
		if err != nil {
			n.fail("%v", err)
		}
		*last() = last().With(k, values)
	case key == "or":
		sh.terms = append(sh.terms, nil)
	case key == "tolerate":
		t := n.taint(value)
		sh.tolerations = append(sh.tolerations, cluster.Toleration{Key: t.Key, Value: t.Value, Exists: t.Value == "",
			Effect: t.Effect})
	case key == "tolerate-all":
		sh.tolerations = append(sh.tolerations, cluster.Toleration{Exists: true})
	case key == "priority":
		sh.priority = int32(n.integer(value))
	case key == "unsupported":
		sh.unsupported = append(sh.unsupported, value)
	default:
		return n.tieWord(sh, key, value)
	}
	return true
}

// addPods: pods NAME [n=1] … makes pods of an owner that wants just as many, unless told otherwise: desired=N, kind=…,
// loose (no owner), unknown (an owner of which nothing is known), node=NAME (they run there), unjudged, do-not-disrupt,
// critical, daemon, mirror, grace=30s, gated (a scheduling gate holds them back). They carry the label app=NAME; see
// ties for what else they can say about each other.
func (n *storyRunner) addPods(name string, words []string) {
	var sh shape
	p := cluster.Pod{Owner: "rs-" + name}
	count, desired, known, judged, gated := 1, -1, true, true, false
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if n.shapeWord(&sh, key, value) || n.podWord(&p, key, value) {
			continue
		}
		switch key {
		case "n":
			count = n.integer(value)
		case "desired":
			desired = n.integer(value)
		case "unknown":
			known = false
		case "unjudged":
			judged = false
		case "gated":
			gated = true
		default:
			n.fail("pods: unknown word %q", word)
		}
	}
	n.w.tie(&sh, name)
	p.Class, p.Namespace, p.Labels = n.w.class(name, sh), sh.ties.namespace, sh.ties.labels
	first := 1
	for n.w.pods[fmt.Sprintf("%s-%03d", name, first)] != nil {
		first++
	}
	for i := range count {
		p.Name = fmt.Sprintf("%s-%03d", name, first+i)
		made := n.w.addPod(p)
		sh.ties.mount(made)
		made.SchedulerSeen = made.SchedulerSeen && judged
		made.Unschedulable = made.Unschedulable && judged && !gated
	}
	if desired < 0 {
		desired = first + count - 1
	}
	if p.Owner != "" && !p.Daemon {
		n.w.owners[p.Owner] = cluster.Owner{UID: p.Owner, Kind: "ReplicaSet", Known: known, Desired: desired}
	}
}

func (n *storyRunner) podWord(p *cluster.Pod, key, value string) bool {
	switch key {
	case "loose":
		p.Owner = ""
	case "node":
		p.Node = n.w.realName(value)
	case "do-not-disrupt":
		p.DoNotDisrupt = true
	case "critical":
		p.Critical = true
	case "daemon":
		p.Daemon = true
	case "mirror":
		p.Mirror = true
	case "grace":
		p.Grace = n.duration(value)
	case "done":
		p.Finished = true
	case "stuck":
		n.w.stuck = true
	default:
		return n.podLifeWord(p, key, value)
	}
	return true
}

func (n *storyRunner) addDaemon(name string, words []string) {
	var sh shape
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if !n.shapeWord(&sh, key, value) {
			n.fail("daemon: unknown word %q", word)
		}
	}
	n.w.tie(&sh, name)
	n.w.daemons[name] = &cluster.Daemon{UID: "ds-" + name, Namespace: "default", Name: name, Class: n.w.class(name, sh)}
}

// addNode: node NAME pool= type= [zone=a] [capacity=on-demand] [label=key=value] [taint=key=value:Effect]: a node of a
// pool that has been there for a while. Without a pool it is a node that is none of ours.
func (n *storyRunner) addNode(name string, words []string) {
	at := map[string]string{"zone": "a", "capacity": "on-demand"}
	var more cluster.Labels
	var taints []cluster.Taint
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "label":
			k, v, _ := strings.Cut(value, "=")
			more = more.With(long(k), v)
		case "taint":
			taints = append(taints, n.taint(value))
		default:
			at[key] = value
		}
	}
	catalog := n.w.catalog()
	t, ok := catalog.Type(at["type"])
	if !ok {
		n.fail("node: unknown type %q", at["type"])
	}
	labels := cluster.LabelsOf(map[string]string{cluster.HostnameLabel: name,
		cluster.InstanceTypeLabel: at["type"], cluster.ZoneLabel: at["zone"],
		cluster.CapacityTypeLabel: at["capacity"]}).Merge(more)
	n.w.nodes[name] = &cluster.Node{Name: name, UID: "node-" + name, ProviderID: "model://" + name, Created: n.w.now,
		Ready: at["ready"] != "false", Labels: labels, Capacity: t.Capacity, Allocatable: t.Allocatable,
		Ours:         at["ours"] == "true",
		DoNotDisrupt: at["do-not-disrupt"] == "true"}
	if pool := n.w.pools[at["pool"]]; pool != nil {
		n.w.nodes[name].Ours = true
		n.adoptNode(name, pool, labels, t)
	}
	n.w.nodes[name].Taints = append(slices.Clone(n.w.nodes[name].Taints), taints...)
}

func (n *storyRunner) adoptNode(name string, pool *cluster.Pool, labels cluster.Labels, t *cluster.Type) {
	labels = labels.Merge(pool.Template.Labels).With(cluster.PoolLabel, pool.Name)
	zone, _ := labels.Get(cluster.ZoneLabel)
	terms, _ := labels.Get(cluster.CapacityTypeLabel)
	price, _ := n.w.catalog().Price(t.Name, zone, terms)
	c := &cluster.Claim{Name: name, UID: "uid-" + name, Pool: pool.Name, Created: n.w.now, Finalized: true,
		ProviderID: "model://" + name, NodeName: name, Labels: labels, Taints: pool.Template.Taints,
		Requirements: require.Set{}.With(cluster.InstanceTypeLabel, require.Only(t.Name)), Price: price,
		Capacity: t.Capacity, Allocatable: t.Allocatable,
		HasTerminationGrace: pool.Template.HasTerminationGrace, TerminationGrace: pool.Template.TerminationGrace}
	for _, kind := range []string{cluster.Launched, cluster.Registered, cluster.Initialized, cluster.ConsistentState} {
		n.w.setCondition(c, kind, cluster.True, "", "")
	}
	c.ExpireAfter = n.w.expire[pool.Name]
	c.Hash, c.HashVersion = pool.Hash, pool.HashVersion
	n.w.run(c)
	for i := range c.Conditions {
		c.Conditions[i].Since = n.w.now.Add(-time.Hour)
	}
	c.Created = n.w.now.Add(-time.Hour)
	n.w.claims[name], n.w.alias[name] = c, name
	node := n.w.nodes[name]
	node.Finalized, node.Taints = true, pool.Template.Taints
	node.Labels = labels.With(cluster.RegisteredLabel, "true").With(cluster.InitializedLabel, "true")
}
