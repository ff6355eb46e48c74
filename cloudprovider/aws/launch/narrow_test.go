package launch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ratelimit"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// sale is an offering in a table: type zone terms price, and for a reservation its id and what is left.
func sale(t *testing.T, text string) (string, cloudprovider.Offering) {
	t.Helper()
	var kind, zone, terms, reservation, how string
	var price float64
	var left int
	n, _ := fmt.Sscanf(text, "%s %s %s %f %s %d %s", &kind, &zone, &terms, &price, &reservation, &left, &how)
	if n < 4 {
		t.Fatalf("%q can't be read", text)
	}
	o := cloudprovider.Offering{Price: price, Available: true, Labels: map[string]string{corev1.LabelTopologyZone: zone,
		v1.CapacityTypeLabelKey: terms}}
	if reservation != "" {
		o.ReservationID, o.ReservationCapacity, o.Available = reservation, left, left > 0
		o.Labels[awsv1.CapacityReservationTypeLabelKey] = how
		if how == "interruptible" {
			o.Labels[awsv1.CapacityReservationTypeLabelKey], o.Labels[awsv1.CapacityReservationInterruptibleLabelKey] =
				"default", "true"
		}
	}
	return kind, o
}

func TestNarrow(t *testing.T) {
	for _, tc := range []struct {
		name      string
		offerings []string
		want      string
	}{
		{"spot before on demand", []string{"m a spot 1", "m a on-demand 3", "n b spot 2"}, "m/a/spot n/b/spot"},
		{"spot that costs more than on demand is no bargain", []string{"m a spot 1", "m a on-demand 3", "n b spot 4"},
			"m/a/spot"},
		{"no spot that is worth it", []string{"m a spot 5", "m a on-demand 3", "n b on-demand 4"},
			"m/a/on-demand n/b/on-demand"},
		{"machines that few need come last", []string{"gpu a on-demand 1", "x.metal a on-demand 1", "m a on-demand 3"},
			"m/a/on-demand"},
		{"unless there are no others", []string{"gpu a on-demand 1", "x.metal a on-demand 2"}, "gpu/a/on-demand " +
			"x.metal/a/on-demand"},
		{"what is reserved comes first", []string{"m a spot 1", "gpu a reserved 0.5 cr-1 2 default"}, "gpu/a/reserved"},
		{"of what is reserved, machines that few need come last, too", []string{"gpu a reserved 0.1 cr-1 2 default",
			"m a reserved 0.5 cr-2 2 default"}, "m/a/reserved"},
		{"a reservation that is full does not count", []string{"m a spot 1", "m a reserved 0.5 cr-1 0 default"},
			"m/a/spot"},
		{"of two reservations the one with more left", []string{"m a reserved 0.5 cr-1 1 default",
			"m a reserved 0.5 cr-2 4 default"}, "m/a/reserved=cr-2"},
		{"only one capacity block", []string{"m a reserved 0.1 cr-1 1 capacity-block", "n a reserved 0.2 cr-2 1 " +
			"capacity-block"}, "m/a/reserved=cr-1"},
		{"interruptible reservations and others don't mix", []string{"m a reserved 0.1 cr-1 1 interruptible",
			"n a reserved 0.2 cr-2 1 default"}, "m/a/reserved=cr-1"},
		{"at the same price what nobody takes back comes first", []string{"m a reserved 0.1 cr-1 9 interruptible",
			"n a reserved 0.1 cr-2 1 capacity-block", "o a reserved 0.1 cr-3 1 default"}, "o/a/reserved=cr-3"},
		{"a block is not taken back", []string{"m a reserved 0.1 cr-1 9 interruptible", "n a reserved 0.1 cr-2 1 " +
			"capacity-block"}, "n/a/reserved=cr-2"},
		{"blocks and reservations don't mix", []string{"m a reserved 0.1 cr-1 1 default", "n a reserved 0.2 cr-2 1 " +
			"capacity-block"}, "m/a/reserved=cr-1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			byType := map[string]*cloudprovider.InstanceType{}
			var list []*cloudprovider.InstanceType
			for _, text := range tc.offerings {
				kind, o := sale(t, text)
				if byType[kind] == nil {
					byType[kind] = &cloudprovider.InstanceType{Name: kind,
						Labels: map[string][]string{corev1.LabelInstanceTypeStable: {kind}}}
					if kind == "gpu" {
						byType[kind].Labels[awsv1.InstanceGPUCountLabelKey] = []string{"1"}
					}
					list = append(list, byType[kind])
				}
				byType[kind].Offerings = append(byType[kind].Offerings, o)
			}
			var got []string
			for _, c := range narrowCandidates(&v1.NodeClaim{}, choose.Ranked(list, &v1.NodeClaim{}), nothingRefused) {
				text := c.Type.Name + "/" + c.Ref().Zone + "/" + c.Ref().CapacityType
				if strings.Contains(tc.want, "=") {
					text += "=" + c.Offering.ReservationID
				}
				got = append(got, text)
			}
			if have := strings.Join(got, " "); have != tc.want {
				t.Errorf("kept %s, want %s", have, tc.want)
			}
		})
	}
}

func TestNarrowLeavesOutWhatWasRefused(t *testing.T) {
	var list []*cloudprovider.InstanceType
	for _, kind := range []string{"m", "n"} {
		it := &cloudprovider.InstanceType{Name: kind}
		for _, text := range []string{"x a spot 1", "x b spot 2", "x a on-demand 3",
			"x a reserved 0.1 cr-1 1 default"} {
			_, o := sale(t, text)
			it.Offerings = append(it.Offerings, o)
		}
		list = append(list, it)
	}
	for name, tc := range map[string]struct {
		refused func(cloudprovider.OfferingRef) bool
		want    string
	}{
		"one of several": {func(o cloudprovider.OfferingRef) bool {
			return o.Within == "cr-1" || o.Type+o.Zone == "ma"
		}, "n/a/spot m/b/spot n/b/spot"},
		"all on the best terms": {func(o cloudprovider.OfferingRef) bool {
			return o.CapacityType != "on-demand"
		}, "m/a/on-demand n/a/on-demand"},
		"all, so EC2 has the word": {func(cloudprovider.OfferingRef) bool { return true }, "m/a/reserved n/a/reserved"},
	} {
		var got []string
		for _, c := range narrowCandidates(&v1.NodeClaim{}, choose.Ranked(list, &v1.NodeClaim{}), tc.refused) {
			got = append(got, c.Type.Name+"/"+c.Ref().Zone+"/"+c.Ref().CapacityType)
		}
		if have := strings.Join(got, " "); have != tc.want {
			t.Errorf("%s: kept %s, want %s", name, have, tc.want)
		}
	}
}

func TestNarrowBoundsTheRequest(t *testing.T) {
	var list []*cloudprovider.InstanceType
	for n := range 100 {
		kind := &cloudprovider.InstanceType{Name: fmt.Sprintf("m%03d", n)}
		for z := range 6 {
			_, o := sale(t, fmt.Sprintf("x z%d on-demand %d", z, n+1))
			kind.Offerings = append(kind.Offerings, o)
		}
		list = append(list, kind)
	}
	got := narrowCandidates(&v1.NodeClaim{}, choose.Ranked(list, &v1.NodeClaim{}), nothingRefused)
	if len(got) != mostLines || got[0].Type.Name != "m000" {
		t.Errorf("%d offerings are kept from %s on", len(got), got[0].Type.Name)
	}
}

// TestNarrowKeepsAChoice: a claim with minValues gets no fewer values than it wants, and nothing is left out for its
// price.
func TestNarrowKeepsAChoice(t *testing.T) {
	var list []*cloudprovider.InstanceType
	for n := range 100 {
		kind := &cloudprovider.InstanceType{Name: fmt.Sprintf("m%03d", n), Labels: map[string][]string{
			corev1.LabelInstanceTypeStable: {fmt.Sprintf("m%03d", n)},
			awsv1.InstanceFamilyLabelKey:   {fmt.Sprintf("f%d", n/80)},
		}}
		if n == 1 {
			kind.Labels[awsv1.InstanceGPUCountLabelKey] = []string{"1"}
		}
		for _, terms := range []string{"spot", "on-demand"} {
			_, o := sale(t, fmt.Sprintf("x a %s %d", terms, n+1))
			kind.Offerings = append(kind.Offerings, o)
		}
		list = append(list, kind)
	}
	for name, tc := range map[string]struct {
		key         string
		least, want int
		exotic      bool
	}{
		"none":     {"", 0, 1, false},
		"types":    {corev1.LabelInstanceTypeStable, 70, 70, true},
		"families": {awsv1.InstanceFamilyLabelKey, 2, mostTypes, true},
	} {
		claim := &v1.NodeClaim{}
		if tc.key != "" {
			claim.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: tc.key, Operator: "Exists",
				MinValues: &tc.least}}
		}
		kinds, families, exotic := map[string]bool{}, map[string]bool{}, false
		for _, c := range narrowCandidates(claim, choose.Ranked(list, claim), nothingRefused) {
			if c.Ref().CapacityType != "spot" {
				t.Errorf("%s: %v is not spot", name, c.Ref())
			}
			kinds[c.Type.Name], families[c.Label(awsv1.InstanceFamilyLabelKey)] = true, true
			exotic = exotic || isExotic(&c)
		}
		if len(kinds) != tc.want || exotic != tc.exotic || tc.key == awsv1.InstanceFamilyLabelKey &&
			len(families) != 2 {
			t.Errorf("%s: %d types, want %d; of %v; machines that few need: %v", name, len(kinds), tc.want,
				families, exotic)
		}
	}
}

func TestPaceGrowsInARush(t *testing.T) {
	now := time.Unix(0, 0)
	p := &launchPace{now: func() time.Time { return now }}
	var waits []time.Duration
	for range 6 {
		waits = append(waits, p.window("k").Idle)
		p.began("k", 1)
		now = now.Add(time.Second)
	}
	if waits[0] != launchIdle || waits[1] <= waits[0] || waits[5] != streakIdle {
		t.Errorf("in a rush launches are gathered for %v", waits)
	}
	if other := p.window("other").Idle; other <= launchIdle || other >= streakIdle {
		t.Errorf("another kind waits %v, want a little longer than usual", other)
	}
	now = now.Add(ratelimit.StreakGap)
	if calm := p.window("k").Idle; calm != launchIdle {
		t.Errorf("after the rush it waits %v", calm)
	}
	if p.began("other", 1); len(p.byKind) != 1 {
		t.Errorf("%d orders are remembered, want 1", len(p.byKind))
	}
}
