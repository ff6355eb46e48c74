package launch

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider/aws/template"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// launchSpec is what a claim asks of EC2, without saying how many. Claims whose specs have enough in common are
// launched together (launchgroup.go).
type launchSpec struct {
	// Key is equal for specs that may be launched together: they differ in nothing but in which options they have, and
	// the same type is the cheapest for all.
	Key string `json:"-"`
	// Class and Pool are tagged on what is launched.
	Class, Pool  string
	CapacityType string
	// Block says that the spec is for a capacity block, Interruptible that it is for a reservation which its owner may
	// take back: EC2 sells each as a capacity type of its own.
	Block, Interruptible bool
	// Prioritized says that prices are the user's own, so that EC2 must go by our order and not by its prices.
	Prioritized bool
	Context     string
	Tags        map[string]string
	Lines       []launchOption `json:"-"`

	class *awsv1.EC2NodeClass
	// templates are those that the options name, so that one that somebody has deleted can be made again.
	templates map[string]*template.Template
}

// launchOption is one way to meet a launch spec: a type in a zone, from a launch template.
type launchOption struct {
	Template, Type, Zone string
	Price                float64

	// capacityID is the reservation or the placement group that the option is for: what is short there need not be
	// elsewhere.
	capacityID string
	// addresses is how many addresses an instance of the type may need in its subnet.
	addresses int64
}

// Request is a claim that wants an instance.
type Request struct {
	claim *v1.NodeClaim
	// isAbandoned tells that whoever wants the instance no longer waits for it. A launch that has not begun yet goes
	// without them: they come again, and by then the claim may have been refused by another launch, and be gone.
	isAbandoned func() bool
	spec        *launchSpec
	// candidates are the offerings that the spec's options stand for.
	candidates []choose.Candidate
	// variants say what each candidate is launched from, in the same order.
	variants []template.Variant
	// hashAnnotations are the annotations that say from which version of the class the instance is launched.
	hashAnnotations map[string]string
}

// candidate finds the offering that EC2 chose.
func (q *Request) candidate(kind, zone string) (*choose.Candidate, *template.Variant) {
	for i := range q.candidates {
		c := &q.candidates[i]
		if c.Type.Name == kind && c.Ref().Zone == zone {
			return c, &q.variants[i]
		}
	}
	return nil, nil
}

// newLaunchSpec writes down what is asked for the candidates, each of which is launched from the template of the same
// index.
func newLaunchSpec(class *awsv1.EC2NodeClass, claim *v1.NodeClaim, candidates []choose.Candidate,
	templates []*template.Template,
	tags map[string]string) (*launchSpec, error) {
	s := &launchSpec{
		templates: map[string]*template.Template{},
		Class:     class.Name, Pool: claim.Labels[v1.NodePoolLabelKey], CapacityType: candidates[0].Ref().CapacityType,
		Prioritized: claim.Annotations[v1.PriceOverlayAppliedAnnotationKey] == "true", Tags: tags, class: class,
	}
	s.Block, s.Interruptible = offer.IsBlock(candidates[0].Offering), offer.IsInterruptible(candidates[0].Offering)
	if class.Spec.Context != nil {
		s.Context = *class.Spec.Context
	}
	for i := range candidates {
		c := &candidates[i]
		s.templates[templates[i].Name] = templates[i]
		s.Lines = append(s.Lines, launchOption{
			Template: templates[i].Name, Type: c.Type.Name, Zone: c.Ref().Zone, Price: c.Offering.Price,
			addresses:  c.Type.Capacity.Pods().Value(),
			capacityID: capacityOf(c),
		})
	}
	slices.SortFunc(s.Lines, func(a, b launchOption) int {
		return cmp.Or(strings.Compare(a.Template, b.Template), cmp.Compare(a.Price, b.Price), strings.Compare(a.Type,
			b.Type), strings.Compare(a.Zone, b.Zone))
	})
	first := &s.Lines[s.cheapest()]
	text, err := json.Marshal([]any{s, first.Template, first.Type})
	if err != nil {
		return nil, fmt.Errorf("writing down the order of NodeClaim %s: %w", claim.Name, err)
	}
	sum := sha256.Sum256(text)
	s.Key = hex.EncodeToString(sum[:])
	return s, nil
}

// capacityOf is the capacity that an offering is cut from, if it is not the whole zone's.
func capacityOf(c *choose.Candidate) string {
	if groups := c.Type.Labels[awsv1.PlacementGroupIDLabelKey]; c.Offering.ReservationID == "" && len(groups) > 0 {
		return groups[0]
	}
	return c.Offering.ReservationID
}

// cheapest is the index of the cheapest option.
func (s *launchSpec) cheapest() int {
	best := 0
	for i := range s.Lines {
		if a, b := &s.Lines[i], &s.Lines[best]; a.Price < b.Price || a.Price == b.Price && strings.Compare(a.Type,
			b.Type) < 0 {
			best = i
		}
	}
	return best
}

// zones are those in which the spec may be met, sorted.
func (s *launchSpec) zones() []string {
	var out []string
	for i := range s.Lines {
		out = append(out, s.Lines[i].Zone)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addresses is how many addresses of its subnet an instance of the spec may need: those of the smallest type, which is
// what it is sure to come to.
func (s *launchSpec) addresses() int64 {
	least := s.Lines[0].addresses
	for i := range s.Lines {
		least = min(least, s.Lines[i].addresses)
	}
	return max(least, 1)
}
