package plan_test

import (
	"fmt"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
)

// A DaemonSet whose pods fit on no node that could be made is told of it, once, and at most twenty are in one plan. A
// pool names three of them and counts the others.
func TestDaemonSetsThatFitNowhereAreTold(t *testing.T) {
	const rest = "; no room is kept for them on new nodes"
	for _, c := range []struct {
		daemons int
		pools   int
		told    int
		pool    string
	}{
		{0, 1, 0, ""},
		{1, 1, 1, "No instance type of the pool has room for a pod of DaemonSets kube-system/d00" + rest},
		{3, 1, 3, "No instance type of the pool has room for a pod of DaemonSets kube-system/d00, kube-system/d01, " +
			"kube-system/d02" + rest},
		{4, 1, 4, "No instance type of the pool has room for a pod of DaemonSets kube-system/d00, kube-system/d01, " +
			"kube-system/d02 and 1 more" + rest},
		{20, 1, 20, "No instance type of the pool has room for a pod of DaemonSets kube-system/d00, kube-system/d01, " +
			"kube-system/d02 and 17 more" + rest},
		{21, 1, 20, "No instance type of the pool has room for a pod of DaemonSets kube-system/d00, kube-system/d01, " +
			"kube-system/d02 and 18 more" + rest},
		{2, 2, 2, "No instance type of the pool has room for a pod of DaemonSets kube-system/d00, kube-system/d01" +
			rest},
	} {
		x := newScene()
		for i := range c.daemons {
			name := fmt.Sprintf("d%02d", i)
			x.s.Daemons = append(x.s.Daemons, &cluster.Daemon{UID: name, Namespace: "kube-system", Name: name,
				Class: sized(9000, 0)})
		}
		for i := 1; i < c.pools; i++ {
			p := *x.pool
			p.Name, p.UID = fmt.Sprint("pool", i), fmt.Sprint("pool", i)
			x.s.Pools = append(x.s.Pools, &p)
		}
		// so that the pod that waits needs a new node
		x.s.Nodes[1].Allocatable = x.p.Class.Requests.Sub(x.p.Class.Requests)
		x.node.Allocatable = x.p.Class.Requests
		p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
		nominated, pools := make(map[string]int), make(map[string]string)
		for _, n := range p.Notes {
			switch n.Reason {
			case plan.FitsNowhere:
				nominated[n.Name]++
			case plan.DaemonSetsOmitted:
				pools[n.Name] = render.Text(n.Text)
			default:
				continue
			}
			if !n.Warning {
				t.Errorf("%d DaemonSets: %q is no warning", c.daemons, render.Text(n.Text))
			}
		}
		for name, times := range nominated {
			if times > 1 {
				t.Errorf("%d DaemonSets: %s is told %d times", c.daemons, name, times)
			}
		}
		if len(nominated) != c.told || pools["default"] != c.pool {
			t.Errorf("%d DaemonSets: %d are told, the pool %q; want %d and %q", c.daemons, len(nominated),
				pools["default"], c.told, c.pool)
		}
	}
}
