package launch

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// A claim that spot would do for, and that is launched on demand with fewer than five types to choose from, is told of
// in the log.
func TestFewTypesAreToldOf(t *testing.T) {
	list := func(texts ...string) []choose.Candidate {
		var out []choose.Candidate
		for _, text := range texts {
			kind, o := sale(t, text)
			out = append(out, choose.Candidate{Type: &cloudprovider.InstanceType{Name: kind}, Offering: &o})
		}
		return out
	}
	five := []string{"a z on-demand 1", "b z on-demand 1", "c z on-demand 1", "d z on-demand 1", "e z on-demand 1"}
	for _, c := range []struct {
		name       string
		candidates []string
		spot       bool // would do
		told       string
	}{
		{"two types", []string{"a z on-demand 1", "a y on-demand 1", "b z on-demand 1"}, true, "types=2"},
		{"four types", five[1:], true, "types=4"},
		{"five types", five, true, ""},
		{"spot would not do", five[:1], false, ""},
		{"it is launched on spot", []string{"a z spot 1"}, true, ""},
	} {
		candidates := list(c.candidates...)
		ranked := candidates
		if c.spot {
			ranked = append(list("s z spot 1"), candidates...)
		}
		var told []string
		ctx := log.IntoContext(t.Context(),
			funcr.New(func(_, args string) { told = append(told, args) }, funcr.Options{Verbosity: 1}))
		claim := &v1.NodeClaim{}
		claim.Name = "mine"
		tellFewTypes(ctx, claim, ranked, candidates)
		if len(told) != min(1, len(c.told)) || c.told != "" && !strings.Contains(told[0],
			strings.Replace(c.told, "=", "\"=", 1)) {
			t.Errorf("%s: the log says %q, want %q", c.name, told, c.told)
		}
	}
}

// The kubelet gives its node the claim's labels, but for those that follow from what is launched; and says on which
// terms and from which class it was launched.
func TestLabelsThatANodeBootsWith(t *testing.T) {
	_, spot := sale(t, "m z spot 1")
	_, steady := sale(t, "m z on-demand 1")
	kind := &cloudprovider.InstanceType{Name: "m", Labels: map[string][]string{corev1.LabelInstanceTypeStable: {"m"}}}
	claim := &v1.NodeClaim{}
	claim.Labels = map[string]string{"team": "a", corev1.LabelInstanceTypeStable: "m", corev1.LabelTopologyZone: "z"}
	for _, c := range []struct {
		class *v1.NodeClassReference
		first *cloudprovider.Offering
		want  map[string]string
	}{
		{nil, &spot, map[string]string{"team": "a", v1.CapacityTypeLabelKey: "spot"}},
		{&v1.NodeClassReference{Name: "default"}, &steady,
			map[string]string{"team": "a", v1.CapacityTypeLabelKey: "on-demand", awsv1.NodeClassLabelKey: "default"}},
	} {
		claim.Spec.NodeClassRef = c.class
		if got := kubeletLabels(claim,
			[]choose.Candidate{{Type: kind, Offering: c.first},
				{Type: &cloudprovider.InstanceType{}, Offering: &spot}}); !maps.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// What is made in EC2 is tagged as the class says, and with the cluster, the pool and the class, whatever the class
// says of these.
func TestTagsOfWhatIsMade(t *testing.T) {
	class := &awsv1.EC2NodeClass{}
	class.Name, class.Spec.Tags = "default", map[string]string{"costs": "shop", awsv1.NodePoolTagKey: "mine"}
	want := map[string]string{"costs": "shop", awsv1.ClusterTagPrefix + "lab": "owned",
		awsv1.EKSClusterNameTagKey: "lab", awsv1.NodePoolTagKey: "general", awsv1.NodeClassTagKey: "default"}
	if got := (&Launcher{o: Options{ClusterName: "lab"}}).tags(class, "general"); !maps.Equal(got, want) ||
		len(class.Spec.Tags) != 2 {
		t.Errorf("%v, want %v; the class has %v", got, want, class.Spec.Tags)
	}
}

// A claim says from which version of its class, and with which instance profile, it was launched.
func TestStampsOfAClass(t *testing.T) {
	class := &awsv1.EC2NodeClass{}
	for profile, count := range map[string]int{"": 2, "profile": 3} {
		class.Status.InstanceProfile = profile
		got, err := HashAnnotations(class, family.Cluster{CABundle: "Y2E="})
		hash, _ := class.Hash("Y2E=")
		if err != nil || len(got) != count || got[awsv1.InstanceProfileAnnotationKey] != profile ||
			got[awsv1.HashAnnotationKey] != hash || got[awsv1.HashVersionAnnotationKey] != awsv1.HashVersion {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// A launch is about to be asked for until it is known what to ask for: others wait for it only so long.
func TestLaunchesThatAreComing(t *testing.T) {
	p := &Launcher{pace: launchPace{now: time.Now}}
	done := p.Expect()
	if !p.worthWaiting(mostTogether) {
		t.Error("nobody waits for what is coming")
	}
	if done(); p.worthWaiting(mostTogether) {
		t.Error("others wait for what has come")
	}
}
