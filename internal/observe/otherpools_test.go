package observe

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/tenon-sh/tenon/internal/cluster"
)

func TestOthersAreToldOnce(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, text string) { lines = append(lines, text) }, funcr.Options{})
	ec2 := cluster.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass"}
	o := newOtherPoolLog(log, map[cluster.ClassRef]string{ec2: "say --cloud-provider=aws"})
	auto := cluster.OtherPool{Name: "auto", NodeClass: cluster.ClassRef{Group: "eks.amazonaws.com", Kind: "NodeClass",
		Name: "default"}}
	named := ec2
	named.Name = "default"
	for _, c := range []struct {
		pools []cluster.OtherPool
		want  []string
	}{
		{nil, nil},
		{[]cluster.OtherPool{auto}, []string{`"NodePool"="auto" "NodeClass"="NodeClass.eks.amazonaws.com"`}},
		{[]cluster.OtherPool{auto, {Name: "ours", NodeClass: named}},
			[]string{`"NodePool"="ours" "NodeClass"="EC2NodeClass.karpenter.k8s.aws" ` +
				`"hint"="say --cloud-provider=aws"`}},
		{nil, nil},
		{[]cluster.OtherPool{auto}, []string{`"NodePool"="auto" "NodeClass"="NodeClass.eks.amazonaws.com"`}},
	} {
		lines = nil
		o.observe(c.pools)
		if len(lines) != len(c.want) {
			t.Errorf("%v: the log has %q", c.pools, lines)
			continue
		}
		for i, want := range c.want {
			if !strings.HasSuffix(lines[i], want) {
				t.Errorf("the log has %q, want an end like %q", lines[i], want)
			}
		}
	}
}
