package ingest

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

func TestRegistrationHealth(t *testing.T) {
	for story, want := range map[string]cluster.ConditionStatus{
		"":              cluster.Unknown,
		"+":             cluster.True,
		"-":             cluster.True,
		"- -":           cluster.False,
		"- + + + -":     cluster.True, // the first has been forgotten
		"+ - + -":       cluster.False,
		"- - + + + ":    cluster.True,
		"- - pool":      cluster.Unknown,
		"- - class":     cluster.Unknown,
		"- - status":    cluster.False,
		"x x x":         cluster.Unknown, // deleted for other reasons
		"- - restart":   cluster.False,
		"+ restart":     cluster.True,
		"- - restart +": cluster.False,
	} {
		b, _ := bookWithPools("default")
		for i, word := range strings.Fields(story) {
			b = act(b, i, word)
		}
		if got := b.Snapshot().Pool("default").RegistrationHealth; got != want {
			t.Errorf("%q: %s, want %s", story, got, want)
		}
	}
}

// act is one step of a story: + and - are launches that became a node or did not.
func act(b *Book, i int, word string) *Book {
	name := fmt.Sprint("c", i)
	b.SetClaim(claimObject(name, "1"))
	switch word {
	case "+":
		b.SetClaim(with(claimObject(name, "2"), func(c *v1.NodeClaim) {
			c.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeRegistered, Status: "True"}}
		}))
	case "-":
		reason := []command.Reason{command.LaunchTimeout, command.RegistrationTimeout}[i%2]
		b.Record(command.Outcome{Command: command.DeleteClaim{Claim: name, Reason: reason}, At: b.now()})
	case "x":
		b.Record(command.Outcome{Command: command.DeleteClaim{Claim: name, Reason: command.Expired}, At: b.now()})
	case "pool":
		b.SetPool(with(pool("default"), func(p *v1.NodePool) { p.Generation = 7 }))
	case "status":
		b.SetPool(with(pool("default"), func(p *v1.NodePool) { p.Status.Nodes = 7 }))
	case "class":
		b.SetNodeClass(defaultClass(), cluster.NodeClassState{Ready: true, Generation: 9})
	case "restart":
		state := b.Snapshot().Pool("default").RegistrationHealth
		b, _ = newBook()
		b.SetClaim(with(claimObject("old", "2"), func(c *v1.NodeClaim) {
			c.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeRegistered, Status: "True"}}
		}))
		b.SetPool(with(pool("default"), func(p *v1.NodePool) {
			p.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeNodeRegistrationHealthy,
				Status: metav1.ConditionStatus(state)}}
		}))
	}
	return b
}
