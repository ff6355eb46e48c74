package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// The NodeClass of every pool.
const (
	classGroup = "sim.tenon.sh"
	classKind  = "SimNodeClass"
	className  = "default"
)

// cloud is the far side: what it sells, and what it runs.
type cloud struct {
	sim   *Sim
	types []*cloudprovider.InstanceType
	// soldOut are offerings without capacity. Some clouds say so beforehand, in their catalog (honest), some only when
	// asked.
	soldOut map[cloudprovider.OfferingRef]bool
	honest  bool
	// vague clouds refuse without naming offerings.
	vague bool
	// late is how long a new machine is missing from the list.
	late     time.Duration
	machines []*machine // in the order in which they were launched, gone ones left out
	launched int
	image    int       // what new machines boot from
	fickle   bool      // it finds each machine drifted
	priced   time.Time // when prices changed last
}

// machine is an instance and the kubelet on it.
type machine struct {
	instance cloudprovider.Instance
	image    int
	node     string // the name that it joins by
	joined   bool
	// awake says that the kubelet runs; late ones never come.
	awake, never, asleep bool
	gone                 bool
	buried               bool     // its claim was lost in an avalanche, and it was not on its way out
	namesake             bool     // another cluster of the same name has launched it
	by                   *replica // who launched it
}

func newCloud(s *Sim) *cloud {
	c := &cloud{sim: s, soldOut: make(map[cloudprovider.OfferingRef]bool), honest: s.clock.chance(0.5),
		vague: s.clock.chance(0.2),
		late:  pick(s.clock, []time.Duration{0, 0, 2 * time.Second})}
	c.types = []*cloudprovider.InstanceType{
		machineType("small", "2", "4Gi", 0.10), machineType("medium", "4", "16Gi", 0.22), machineType("large", "8",
			"32Gi", 0.43),
		machineType("wide", "16", "32Gi", 0.80),
	}
	return c
}

func machineType(name, cpu, memory string, price float64) *cloudprovider.InstanceType {
	out := &cloudprovider.InstanceType{
		Name: name,
		Labels: map[string][]string{
			corev1.LabelInstanceTypeStable: {name}, corev1.LabelArchStable: {v1.ArchitectureAmd64},
			corev1.LabelOSStable: {string(corev1.Linux)},
		},
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU: apiresource.MustParse(cpu), corev1.ResourceMemory: apiresource.MustParse(memory),
			corev1.ResourcePods:             apiresource.MustParse("20"),
			corev1.ResourceEphemeralStorage: apiresource.MustParse("20Gi"),
		},
		Overhead: corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("100m"),
			corev1.ResourceMemory: apiresource.MustParse("256Mi")},
	}
	for i, zone := range zones() {
		for _, terms := range []string{v1.CapacityTypeOnDemand, v1.CapacityTypeSpot} {
			p := price
			if terms == v1.CapacityTypeSpot {
				p *= 0.4 + 0.05*float64(i)
			}
			out.Offerings = append(out.Offerings, cloudprovider.Offering{
				Labels: map[string]string{corev1.LabelTopologyZone: zone, v1.CapacityTypeLabelKey: terms}, Price: p,
				Available: true,
			})
		}
	}
	return out
}

func zones() []string { return []string{"zone-a", "zone-b"} }

// InstanceTypes is what the cloud sells.
func (c *cloud) InstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	if c.sim.strikes("launchError", c.sim.rates.launchError) {
		return nil, errors.New("the cloud has a bad day")
	}
	if !c.honest || len(c.soldOut) == 0 {
		return c.types, nil
	}
	var out []*cloudprovider.InstanceType
	for _, t := range c.types {
		copied := *t
		copied.Offerings = slices.Clone(t.Offerings)
		for i := range copied.Offerings {
			o := &copied.Offerings[i]
			o.Available = !c.soldOut[refOf(t.Name, o)]
		}
		out = append(out, &copied)
	}
	return out, nil
}

func refOf(name string, o *cloudprovider.Offering) cloudprovider.OfferingRef {
	return cloudprovider.OfferingRef{Type: name, Zone: o.Labels[corev1.LabelTopologyZone],
		CapacityType: o.Labels[v1.CapacityTypeLabelKey]}
}

// launch runs a machine for the claim. It is idempotent by the claim's UID.
func (c *cloud) launch(r *replica, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	for _, m := range c.machines {
		if m.instance.ClaimUID == string(claim.UID) {
			return c.shown(m), nil
		}
	}
	ranked := choose.Ranked(c.types, claim)
	chosen, err := choose.Available(ranked, func(o cloudprovider.OfferingRef) bool { return c.soldOut[o] })
	if err != nil {
		if c.vague {
			return nil, &cloudprovider.NoCapacityError{Message: "try again later"}
		}
		return nil, err
	}
	s := c.sim
	c.launched++
	m := &machine{instance: *chosen.Instance(claim), by: r, image: c.image, node: fmt.Sprintf("node-%d", c.launched),
		never: s.strikes("neverComes", s.rates.neverComes)}
	m.instance.ProviderID = fmt.Sprintf("sim:///%s/i-%d", chosen.Ref().Zone, c.launched)
	m.instance.CreatedAt = s.clock.now
	c.machines = append(c.machines, m)
	s.trace.note("cloud: runs %s (%s) for %s", m.instance.ProviderID, m.instance.Type, claim.Name)
	s.judge.launched(claim, m)
	s.boot(m)
	return c.shown(m), nil
}

func (c *cloud) shown(m *machine) *cloudprovider.Instance {
	out := m.instance
	out.Capacity, out.Allocatable = m.instance.Capacity.DeepCopy(), m.instance.Allocatable.DeepCopy()
	return &out
}

func (c *cloud) find(id string) *machine {
	for _, m := range c.machines {
		if m.instance.ProviderID == id {
			return m
		}
	}
	return nil
}

// end begins to end a machine.
func (c *cloud) end(id string, owner cloudprovider.Owner) error {
	m := c.find(id)
	if m == nil {
		return &cloudprovider.NotFoundError{ProviderID: id}
	}
	if !owner.Of(m.instance.ClaimUID) {
		return &cloudprovider.NotOwnedError{ProviderID: id, Want: owner, Owner: m.instance.Owner()}
	}
	if !m.instance.Terminating {
		m.instance.Terminating = true
		c.sim.trace.note("cloud: ends %s", id)
		c.sim.clock.after(c.sim.clock.between(0, 5*time.Second), func() { m.awake = false })
		c.sim.clock.after(c.sim.clock.between(time.Second, 15*time.Second), func() { c.vanish(m) })
	}
	return nil
}

// vanish is when a machine is no more, because it was ended or because it died.
func (c *cloud) vanish(m *machine) {
	if m.gone {
		return
	}
	m.gone, m.awake = true, false
	c.machines = slices.DeleteFunc(c.machines, func(o *machine) bool { return o == m })
	c.sim.trace.note("cloud: %s is gone", m.instance.ProviderID)
	c.sim.machineGone(m)
}

// cloudClient is a replica's connection to the cloud.
type cloudClient struct{ r *replica }

var _ cloudprovider.Instances = cloudClient{}

func (d cloudClient) call(what string, do func() error) error {
	s := d.r.sim
	cut := d.r.current.stopped
	if !d.r.pause(s.clock.between(5*time.Millisecond, 400*time.Millisecond)) {
		if !cut && s.clock.chance(0.5) { // of what a dead process had sent, some still arrives
			err := do()
			s.trace.note("%s: %s arrives after its sender is dead: %v", d.r, what, err)
		}
		return context.Canceled
	}
	switch {
	case s.strikes("throttled", s.rates.throttled):
		return &cloudprovider.ThrottledError{Cause: errors.New("too many requests")}
	case s.strikes("launchError", s.rates.launchError):
		return errors.New("the cloud has a bad day")
	}
	err := do()
	if s.strikes("cloudAnswerLost", s.rates.cloudAnswerLost) {
		s.trace.note("%s: the cloud's answer to %s is lost (%v)", d.r, what, err)
		d.r.pause(s.clock.between(time.Second, 10*time.Second))
		return errTimeout
	}
	if !d.r.pause(s.clock.between(5*time.Millisecond, 800*time.Millisecond)) {
		return context.Canceled
	}
	return err
}

// Create launches a machine.
func (d cloudClient) Create(_ context.Context, claim *v1.NodeClaim) (out *cloudprovider.Instance, err error) {
	err = d.call("the launch for "+claim.Name, func() error {
		out, err = d.r.sim.cloud.launch(d.r, claim)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Get finds a machine.
func (d cloudClient) Get(_ context.Context, id string) (out *cloudprovider.Instance, err error) {
	err = d.call("a question for "+id, func() error {
		m := d.r.sim.cloud.find(id)
		if m == nil {
			return &cloudprovider.NotFoundError{ProviderID: id}
		}
		out = d.r.sim.cloud.shown(m)
		return nil
	})
	return out, err
}

// List finds all machines.
func (d cloudClient) List(context.Context) (out []*cloudprovider.Instance, err error) {
	err = d.call("a list", func() error {
		out = d.r.sim.cloud.list()
		return nil
	})
	return out, err
}

func (c *cloud) list() []*cloudprovider.Instance {
	var out []*cloudprovider.Instance
	for _, m := range c.machines {
		if c.sim.clock.now.Sub(m.instance.CreatedAt) >= c.late {
			out = append(out, c.shown(m))
		}
	}
	return out
}

// register is the cloud's list as a replica reads it beside its commands, between two plans.
type register struct{ cloudClient }

func (d register) List(context.Context) ([]*cloudprovider.Instance, error) {
	if s := d.r.sim; s.strikes("launchError", s.rates.launchError) {
		return nil, errors.New("the cloud has a bad day")
	}
	return d.r.sim.cloud.list(), nil
}

// Delete ends a machine.
func (d cloudClient) Delete(_ context.Context, id string, owner cloudprovider.Owner) error {
	return d.call("the end of "+id, func() error {
		d.r.sim.judge.ends(d.r, id)
		return d.r.sim.cloud.end(id, owner)
	})
}
