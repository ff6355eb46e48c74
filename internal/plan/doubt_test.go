package plan

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/require"
)

// TestDoubtsAreTold: a label that is probably mistyped changes nothing, and the pool says so whether it can launch or
// not.
func TestDoubtsAreTold(t *testing.T) {
	offering := cluster.Offering{Available: true, Labels: cluster.LabelsOf(map[string]string{"zone": "a"})}
	p := &cluster.Pool{Catalog: cluster.NewCatalog([]cluster.Type{{Name: "one"}}, []cluster.Offering{offering}),
		NodeClass: cluster.NodeClassState{Ready: true},
		Warnings:  []cluster.Problem{{Field: "spec.x", Text: "zoen is a label of your own"}}}
	const doubt = "spec.x: zoen is a label of your own"
	if c := render.Condition(canLaunchCondition(&cluster.Snapshot{}, p, true)); c.Status != cluster.True ||
		c.Message != doubt {
		t.Errorf("%+v", c)
	}
	p.Template.Requirements = require.Set{}.With("zone", require.Only("b"))
	c := render.Condition(canLaunchCondition(&cluster.Snapshot{}, p, true))
	if c.Status != cluster.False || c.Message != "no instance type has zone In [b]; "+doubt {
		t.Errorf("%+v", c)
	}
	p.Warnings = nil
	if c := render.Condition(canLaunchCondition(&cluster.Snapshot{}, p, true)); c.Message != "no instance type has "+
		"zone In [b]" {
		t.Errorf("%+v", c)
	}
}
