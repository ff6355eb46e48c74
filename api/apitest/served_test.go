package apitest

import (
	"encoding/json"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

func TestKinds(t *testing.T) {
	c, err := discovery.NewDiscoveryClientForConfig(newLab(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		group, resource, kind string
		shortNames            []string
	}{
		{"karpenter.sh/v1", "nodepools", "NodePool", nil},
		{"karpenter.sh/v1", "nodepools/status", "NodePool", nil},
		{"karpenter.sh/v1", "nodepools/scale", "Scale", nil},
		{"karpenter.sh/v1", "nodeclaims", "NodeClaim", nil},
		{"karpenter.sh/v1", "nodeclaims/status", "NodeClaim", nil},
		{"karpenter.sh/v1alpha5", "provisioners", "Provisioner", nil},
		{"karpenter.sh/v1alpha5", "provisioners/status", "Provisioner", nil},
		{"karpenter.k8s.aws/v1alpha1", "awsnodetemplates", "AWSNodeTemplate", nil},
		{"karpenter.k8s.aws/v1alpha1", "awsnodetemplates/status", "AWSNodeTemplate", nil},
		{"karpenter.kwok.sh/v1alpha1", "kwoknodeclasses", "KWOKNodeClass", []string{"kwoknc", "kwokncs"}},
		{"karpenter.kwok.sh/v1alpha1", "kwoknodeclasses/status", "KWOKNodeClass", nil},
		{"karpenter.k8s.aws/v1", "ec2nodeclasses", "EC2NodeClass", []string{"ec2nc", "ec2ncs"}},
		{"karpenter.k8s.aws/v1", "ec2nodeclasses/status", "EC2NodeClass", nil},
	}
	for _, tc := range cases {
		t.Run(tc.resource, func(t *testing.T) {
			list, err := c.ServerResourcesForGroupVersion(tc.group)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == tc.resource })
			if i < 0 {
				t.Fatalf("%s does not serve %s", tc.group, tc.resource)
			}
			got := list.APIResources[i]
			if got.Kind != tc.kind || got.Namespaced || !slices.Equal(got.ShortNames, tc.shortNames) {
				t.Errorf("got %+v", got)
			}
			if main := !slices.Contains([]rune(tc.resource), '/'); main && !slices.Equal(got.Categories,
				[]string{"karpenter"}) {
				t.Errorf("categories are %v, want karpenter", got.Categories)
			}
		})
	}
}

func TestPrintColumns(t *testing.T) {
	c, err := discovery.NewDiscoveryClientForConfig(newLab(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		path         string
		narrow, wide []string
	}{
		{"/apis/karpenter.sh/v1/nodepools",
			[]string{"Name", "NodeClass", "Nodes", "Ready", "Age", "CanLaunch"}, []string{"Weight", "CPU", "Memory"}},
		{"/apis/karpenter.sh/v1/nodeclaims",
			[]string{"Name", "Type", "Capacity", "Zone", "Node", "Ready", "Age"},
			[]string{"ImageID", "ID", "NodePool", "NodeClass", "Drifted"}},
		{"/apis/karpenter.sh/v1alpha5/provisioners", []string{"Name", "NodePool", "NodeClass", "Ready", "Age"},
			[]string{"Template", "Weight"}},
		{"/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates", []string{"Name", "NodeClass", "Ready", "Age"}, nil},
		{"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", []string{"Name", "Ready", "Age"}, nil},
		{"/apis/karpenter.k8s.aws/v1/ec2nodeclasses", []string{"Name", "Ready", "Age"}, []string{"Role"}},
	}
	for _, tc := range cases {
		t.Run(tc.path, func(t *testing.T) {
			table := getTable(t, c, tc.path)
			var narrow, wide []string
			for _, column := range table.ColumnDefinitions {
				if column.Priority == 0 {
					narrow = append(narrow, column.Name)
				} else {
					wide = append(wide, column.Name)
				}
			}
			if !slices.Equal(narrow, tc.narrow) || !slices.Equal(wide, tc.wide) {
				t.Errorf("columns are %v and wide %v, want %v and %v", narrow, wide, tc.narrow, tc.wide)
			}
		})
	}
}

func getTable(t *testing.T, c *discovery.DiscoveryClient, path string) *metav1.Table {
	t.Helper()
	body, err := c.RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(body, table); err != nil {
		t.Fatal(err)
	}
	return table
}

// The cells show that the paths of the columns lead somewhere.
func TestPrintedNodeClaim(t *testing.T) {
	l := newLab(t)
	c := l.Client(scheme(t))
	claim := newClaim("printed")
	claim.Labels = map[string]string{
		v1.NodePoolLabelKey: "blue", v1.CapacityTypeLabelKey: "spot",
		"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "zone-a",
	}
	if err := c.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	claim.Status = v1.NodeClaimStatus{
		NodeName: "node-1", ProviderID: "kwok://node-1", ImageID: "image-1",
		Conditions: []metav1.Condition{condition(v1.ConditionTypeReady, "True"),
			condition(v1.ConditionTypeDrifted, "False")},
	}
	if err := c.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}

	d, err := discovery.NewDiscoveryClientForConfig(l.Config())
	if err != nil {
		t.Fatal(err)
	}
	cells := getTable(t, d, "/apis/karpenter.sh/v1/nodeclaims/printed").Rows[0].Cells
	cells = slices.Delete(cells, 6, 7) // the age
	want := []any{"printed", "m5.large", "spot", "zone-a", "node-1", "True", "image-1", "kwok://node-1", "blue",
		"default", "False"}
	if !slices.Equal(cells, want) {
		t.Errorf("cells are %v, want %v", cells, want)
	}
}

func condition(name string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: name, LastTransitionTime: metav1.Now()}
}

func newClaim(name string) *v1.NodeClaim {
	return &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.NodeClaimSpec{
			Requirements: []v1.NodeSelectorRequirementWithMinValues{},
			NodeClassRef: &v1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "default"},
		},
	}
}

func newPool(name string) *v1.NodePool {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind,
		Name: "default"}
	return pool
}

func TestScale(t *testing.T) {
	c := strictClient(t)
	pool := newPool("static")
	pool.Spec.Replicas = new(int64)
	if err := c.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	pool.Status.Nodes = 2
	if err := c.Status().Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}

	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	if err := c.SubResource("scale").Update(t.Context(), pool, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := c.SubResource("scale").Get(t.Context(), pool, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 7 || scale.Status.Replicas != 2 {
		t.Errorf("the scale wants %d and has %d, want 7 and 2", scale.Spec.Replicas, scale.Status.Replicas)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); err != nil {
		t.Fatal(err)
	}
	if pool.Spec.Replicas == nil || *pool.Spec.Replicas != 7 {
		t.Errorf("the pool's replicas are %v, want 7", pool.Spec.Replicas)
	}
}
