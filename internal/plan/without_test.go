package plan

import (
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// A plan without some of its commands is also without what only makes sense together with them, and the plan itself
// stays.
func TestWithoutCommands(t *testing.T) {
	p := Plan{demand: 3, Begun: []disrupt.Move{{ID: "m1"}, {ID: "m2"}}, Commands: []command.Command{
		command.Fence{Claim: "a", Node: "a", Move: "m1"}, command.Fence{Claim: "b", Node: "b", Move: "m1"},
		command.CreateClaim{Name: "new-1", Replaces: "m1"},
		command.Fence{Claim: "c", Node: "c", Move: "m2"}, command.CreateClaim{Name: "new-2", Replaces: "m2"},
		command.CreateClaim{Name: "for-pods"},
		command.DeleteClaim{Claim: "d", Departure: "p"}, command.DeleteClaim{Claim: "e", Departure: "p"},
		command.DeleteClaim{Claim: "f"}, command.DeleteClaim{Claim: "g"},
	}}
	show := func(p Plan) string {
		var out []string
		for _, c := range p.Commands {
			out = append(out, c.Key())
		}
		for _, m := range p.Begun {
			out = append(out, m.ID)
		}
		return strings.Join(out, " ")
	}
	before := show(p)
	for _, c := range []struct {
		out  command.Command
		want string
	}{
		{command.Fence{Node: "a"}, "fence/c create/new-2 create/for-pods delete/d delete/e delete/f delete/g m2"},
		{command.DeleteClaim{Claim: "d"},
			"fence/a fence/b create/new-1 fence/c create/new-2 create/for-pods delete/f delete/g m1 m2"},
		{command.DeleteClaim{Claim: "f"},
			"fence/a fence/b create/new-1 fence/c create/new-2 create/for-pods delete/d delete/e delete/g m1 m2"},
		{command.Adopt{Claim: "nobody's business"}, before},
	} {
		rest := p.Without(map[string]bool{c.out.Key(): true})
		if got := show(rest); got != c.want {
			t.Errorf("without %s:\n got %s\nwant %s", c.out.Key(), got, c.want)
		}
		if rest.demand != 0 || show(p) != before || p.demand != 3 {
			t.Errorf("without %s: the plan itself has changed, or the rest counts as planned like this", c.out.Key())
		}
	}
}
