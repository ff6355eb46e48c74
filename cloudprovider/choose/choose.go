// Package choose finds the offerings that a claim may be launched on. Every provider has to answer that question the
// same way, so it is answered once, here, for the providers of this repository and for those that live elsewhere.
//
// It is public and pure: cloudprovider values and a NodeClaim in, candidates out.
package choose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// Candidate is an offering of an instance type that a claim may be launched on.
type Candidate struct {
	Type     *cloudprovider.InstanceType
	Offering *cloudprovider.Offering

	asked requirements
}

// requirements are those of a claim, by label.
type requirements map[string][]v1.NodeSelectorRequirementWithMinValues

// Labels are those that the node will have of its type and its offering. Where the type leaves a choice, such as
// between operating systems, it is the first value that the claim allows.
func (c *Candidate) Labels() map[string]string {
	out := make(map[string]string, len(c.Type.Labels)+len(c.Offering.Labels))
	for key, values := range c.Type.Labels {
		if i := c.asked.firstAllowed(key, values); i >= 0 {
			out[key] = values[i]
		}
	}
	maps.Copy(out, c.Offering.Labels)
	return out
}

// Label is one of Labels; empty if the node won't have it.
func (c *Candidate) Label(key string) string {
	if value, ok := c.Offering.Labels[key]; ok {
		return value
	}
	values := c.Type.Labels[key]
	if i := c.asked.firstAllowed(key, values); i >= 0 {
		return values[i]
	}
	return ""
}

// Ref names the candidate's offering.
func (c *Candidate) Ref() cloudprovider.OfferingRef {
	return cloudprovider.OfferingRef{
		Type:         c.Type.Name,
		Zone:         c.Offering.Labels[corev1.LabelTopologyZone],
		CapacityType: c.Offering.Labels[v1.CapacityTypeLabelKey],
	}
}

// Instance is what the candidate becomes once it is launched for the claim. The id and the time are the cloud's to set.
func (c *Candidate) Instance(claim *v1.NodeClaim) *cloudprovider.Instance {
	return &cloudprovider.Instance{
		ClaimName:   claim.Name,
		ClaimUID:    string(claim.UID),
		Type:        c.Type.Name,
		Labels:      c.Labels(),
		Capacity:    c.Type.Capacity.DeepCopy(),
		Allocatable: c.Type.Allocatable(),
		Price:       c.Offering.Price,
	}
}

// Ranked returns every offering, available or not, that the claim's requirements allow and whose type holds the
// claim's requests; cheapest first, ties by type name, zone and capacity type, so that the answer never depends on
// chance.
//
// A requirement on a label that no type and no offering of the catalog has is about the node and not about the
// machine (a team's name, say): every candidate meets it, because the node gets its labels from the claim.
func Ranked(types []*cloudprovider.InstanceType, claim *v1.NodeClaim) []Candidate {
	asked := requirements{}
	for _, r := range claim.Spec.Requirements {
		if len(asked[r.Key]) > 0 || isKnown(types, r.Key) {
			asked[r.Key] = append(asked[r.Key], r)
		}
	}
	var out []Candidate
	for _, t := range types {
		if !asked.allowType(t) || !Fits(claim.Spec.Resources.Requests, t) {
			continue
		}
		for i := range t.Offerings {
			if asked.allowOffering(t, &t.Offerings[i]) {
				out = append(out, Candidate{Type: t, Offering: &t.Offerings[i], asked: asked})
			}
		}
	}
	slices.SortFunc(out, byPrice)
	return out
}

func byPrice(a, b Candidate) int {
	x, y := a.Ref(), b.Ref()
	return compare(a.Offering.Price, b.Offering.Price, &x, &y)
}

func compare(price, other float64, x, y *cloudprovider.OfferingRef) int {
	if c := cmp.Compare(price, other); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(x.Type, y.Type), strings.Compare(x.Zone, y.Zone), strings.Compare(x.CapacityType,
		y.CapacityType))
}

// Available returns the first candidate that the cloud says it can sell and that is not refused. If there is none,
// the error is a NoCapacityError that lists what was passed over.
func Available(ranked []Candidate, refused func(cloudprovider.OfferingRef) bool) (*Candidate, error) {
	var exhausted []cloudprovider.OfferingRef
	for i := range ranked {
		c := &ranked[i]
		if c.Offering.Available && !refused(c.Ref()) {
			return c, nil
		}
		exhausted = append(exhausted, c.Ref())
	}
	if len(exhausted) == 0 {
		return nil, &cloudprovider.NoCapacityError{Message: "no instance type meets the claim's requirements and " +
			"holds its requests"}
	}
	return nil, &cloudprovider.NoCapacityError{
		Exhausted: exhausted,
		Message:   fmt.Sprintf("none of the %d offerings that the claim allows is available", len(exhausted)),
	}
}

// Fits tells whether a node of the type can hold the requests.
func Fits(requests corev1.ResourceList, t *cloudprovider.InstanceType) bool {
	for name, want := range requests {
		have := t.Capacity[name]
		if kept, ok := t.Overhead[name]; ok {
			have = have.DeepCopy()
			have.Sub(kept)
		}
		if have.Cmp(want) < 0 {
			return false
		}
	}
	return true
}

// isKnown tells whether a type or an offering of the catalog has the label. Only such labels can rule an offering out.
func isKnown(types []*cloudprovider.InstanceType, key string) bool {
	for _, t := range types {
		if _, ok := t.Labels[key]; ok {
			return true
		}
		for i := range t.Offerings {
			if _, ok := t.Offerings[i].Labels[key]; ok {
				return true
			}
		}
	}
	return false
}

// allowType tells whether the labels that the type has can meet the requirements.
func (q requirements) allowType(t *cloudprovider.InstanceType) bool {
	for key := range q {
		if values, ok := t.Labels[key]; ok && q.firstAllowed(key, values) < 0 {
			return false
		}
	}
	return true
}

// allowOffering tells whether the offering meets the requirements that its type leaves to it.
func (q requirements) allowOffering(t *cloudprovider.InstanceType, o *cloudprovider.Offering) bool {
	for key := range q {
		value, ok := o.Labels[key]
		if _, decided := t.Labels[key]; decided && !ok {
			continue
		}
		if !q.allow(key, value, ok) {
			return false
		}
	}
	return true
}

// firstAllowed is the index of the first value that the requirements on the label allow; -1 if there is none.
func (q requirements) firstAllowed(key string, values []string) int {
	return slices.IndexFunc(values, func(value string) bool { return q.allow(key, value, true) })
}

func (q requirements) allow(key, value string, exists bool) bool {
	for i := range q[key] {
		if !Allows(&q[key][i], value, exists) {
			return false
		}
	}
	return true
}
