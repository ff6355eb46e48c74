package plan_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

// As long as nothing changes, pods are not placed again because some node is advised to go and held.
func TestAdviceKeepsTheMemory(t *testing.T) {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	for _, line := range []string{
		"type small cpu=4 memory=8Gi price=0.10", "pool default", "node n1 pool=default type=small",
		"pods web n=1 cpu=1 node=n1",
		"tick 1h", "settle", "protect n1", "interrupt n1 RebalanceRecommendation", "pods more n=1 cpu=1", "tick 10s",
	} {
		n.tell(line)
	}
	look := func() *cluster.Snapshot {
		s := n.w.snapshot(nil)
		s.DemandRev, s.SupplyRev = 7, 7
		return s
	}
	first := plan.Make(look(), n.policy, nil, nil)
	n.tell("pods late n=1 cpu=3 node=n1") // the room is gone and nobody has said so
	if p := plan.Make(look(), n.policy, &first, nil); !p.Provisioned || len(creates(&p)) > 0 {
		t.Error("the pods were placed again although nothing is said to have changed")
	}
	s := look()
	s.SupplyRev = 8
	if p := plan.Make(s, n.policy, &first, nil); len(creates(&p)) != 1 {
		t.Error("the pods were not placed again although something has changed")
	}
}

// adviceWorld is a small cluster whose cloud advises to leave one node after the other.
type adviceWorld struct {
	*storyRunner
	chance *rand.Rand
	before plan.Plan
	late   int
}

// newAdviceWorld draws nodes with pods, and how much may be bought beside them.
func newAdviceWorld(t *testing.T, seed int64) *adviceWorld {
	co := &adviceWorld{storyRunner: &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()},
		chance: rand.New(rand.NewSource(seed))}
	nodes := 2 + co.chance.Intn(3)
	co.policy.Placement = []plan.PlacementMode{plan.PlaceByNomination, plan.PlaceByBinding,
		plan.PlaceByEvent}[co.chance.Intn(3)]
	limit := ""
	if co.chance.Intn(2) == 0 {
		limit = fmt.Sprintf(" limit.cpu=%d", 8*nodes+4*co.chance.Intn(4))
	}
	co.say("type small cpu=4 memory=16Gi price=0.10", "type large cpu=8 memory=32Gi price=0.20",
		"pool default after=1h"+limit)
	for i := range nodes {
		co.say(fmt.Sprintf("node n%d pool=default type=large", i))
		for j := range co.chance.Intn(4) {
			co.say(fmt.Sprintf("pods p%d-%d n=1 cpu=%dm node=n%d", i, j, 100*(1+co.chance.Intn(20)), i))
		}
	}
	co.say("tick 1h")
	return co
}

// happens is what people, the cloud and pods do between two plans.
func (co *adviceWorld) happens() {
	var c *cluster.Claim
	if names := slices.Sorted(maps.Keys(co.w.nodes)); len(names) > 0 {
		c = co.w.claimOf(names[co.chance.Intn(len(names))])
	}
	switch what := co.chance.Intn(8); {
	case what == 0 && c != nil:
		c.Interruption = cluster.Interruption{Kind: "RebalanceRecommendation"}
	case what == 1 && c != nil:
		c.DoNotDisrupt = !c.DoNotDisrupt
	case what < 5:
		co.late++
		co.say(fmt.Sprintf("pods late%d n=1 desired=%d cpu=%dm", co.late, 1+co.chance.Intn(2),
			100*(1+co.chance.Intn(40))))
	case what == 5:
		if pods := slices.Sorted(maps.Keys(co.w.pods)); len(pods) > 0 {
			co.say("delete pod " + pods[co.chance.Intn(len(pods))])
		}
	}
}

// pass makes a plan, judges it and carries it out.
func (co *adviceWorld) pass() {
	s := co.w.snapshot(nil)
	s.DemandRev, s.SupplyRev = s.Rev, s.Rev
	for range 2 {
		co.before = co.sameWithMemory(s, &co.before)
		s = later(s, time.Duration(1+co.chance.Intn(20))*time.Second)
	}
	co.say("plan")
	co.judge(&co.last)
	co.say("act", fmt.Sprintf("tick %ds", 1+co.chance.Intn(8)))
}

// judge: nobody is sent to a node that is fenced, and nothing is bought for who has room on one that stays open.
func (co *adviceWorld) judge(p *plan.Plan) {
	fenced := make(map[string]bool)
	for _, c := range p.Commands {
		if f, ok := c.(command.Fence); ok {
			fenced[f.Node] = true
		}
	}
	for _, a := range p.Placement.Assigned {
		if fenced[a.Host] && co.w.claimOf(a.Host).IsInterrupted() {
			co.fail("%s is sent to %s, which is fenced", a.Pod.Name, a.Host)
		}
	}
	for _, c := range p.Commands {
		switch c := c.(type) {
		case command.Nominate:
			if fenced[c.Node] {
				co.fail("%s is told that %s is for it, which is fenced", c.Name, c.Node)
			}
		case command.CreateClaim:
			if c.Reason == command.Provisioned {
				co.judgePurchase(p, fenced, c.Pods)
			}
		}
	}
}

// judgePurchase looks for room on nodes that the cloud only advises to leave and that nobody closes.
func (co *adviceWorld) judgePurchase(p *plan.Plan, fenced map[string]bool, pods []*cluster.Pod) {
	for name, n := range co.w.nodes {
		c := co.w.claimOf(name)
		if c == nil || !c.IsAdvisedToGo() || !c.Deleting.IsZero() || fenced[name] || len(n.Taints) > 0 ||
			c.Replaces != "" {
			// such are kept for others
			continue
		}
		free := n.Allocatable
		for _, there := range co.w.pods {
			if there.Node == name && there.UsesRoom() {
				free = free.Sub(there.Class.Requests)
			}
		}
		for _, a := range p.Placement.Assigned {
			if a.Host == name {
				free = free.Sub(a.Pod.Class.Requests)
			}
		}
		for _, pod := range pods {
			if pod.Class.Requests.Fits(free) {
				co.fail("a node is bought for %s, which has room on %s", pod.Name, name)
			}
		}
	}
}

// Whatever the cloud advises, plans agree with themselves and with what kube-scheduler does, and in the end all pods
// run that can.
func TestAdviceStorm(t *testing.T) {
	for seed := range int64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			co := newAdviceWorld(t, seed)
			for range 40 {
				co.happens()
				co.pass()
			}
			for _, c := range co.w.claims {
				c.DoNotDisrupt = false
			}
			limited := co.w.pools["default"].Limits.Any()
			for range 60 {
				co.say("plan", "act", "tick 1m")
			}
			for name, c := range co.w.claims {
				if !limited && (c.IsInterrupted() || c.Move != "") {
					co.fail("%s is still there: %+v in move %q", name, c.Interruption, c.Move)
				}
			}
			for _, p := range co.w.pods {
				if p.Node == "" && p.Deleting.IsZero() && !limited {
					co.fail("%s has no node", p.Name)
				}
			}
		})
	}
}
