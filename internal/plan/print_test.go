package plan_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// printPlan writes a plan as people would tell it. Pool statuses are left out unless asked for: they accompany
// everything.
func (w *world) printPlan(p plan.Plan, status bool) string {
	out := new(strings.Builder)
	w.printCreates(out, &p)
	for _, c := range p.Commands {
		if line := w.commandLine(c, status); line != "" {
			fmt.Fprintln(out, line)
		}
	}
	out.WriteString(w.givenUpLines(&p))
	w.printPlacement(out, &p.Placement)
	for _, fault := range p.Placement.Faults { // no story has one
		fmt.Fprintln(out, "FAULT", fault)
	}
	if !p.WakeAt.IsZero() {
		fmt.Fprintf(out, "look again in %s\n", p.WakeAt.Sub(p.Now))
	}
	if out.Len() == 0 {
		return "nothing to do\n"
	}
	return out.String()
}

// priceLine tells what the new nodes cost, and below which price nobody can get.
func priceLine(p *plan.Plan, asked bool) string {
	if !asked {
		return ""
	}
	return fmt.Sprintf("new nodes cost $%.3f; nobody can do it for less than $%.3f\n", p.Placement.Price,
		p.Placement.Bound)
}

// inOrder sorts new claims by what they are, because in which order they are planned tells nothing.
func inOrder(p *plan.Plan) []command.CreateClaim {
	list := creates(p)
	slices.SortStableFunc(list, func(a, b command.CreateClaim) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(describeClaim(&a), describeClaim(&b)))
	})
	return list
}

// printCreates writes claims that differ only in their names on one line.
func (w *world) printCreates(out *strings.Builder, p *plan.Plan) {
	var last, first, final string
	flush := func() {
		switch {
		case last == "":
		case first == final:
			fmt.Fprintf(out, "create %s: %s\n", first, last)
		default:
			fmt.Fprintf(out, "create %s to %s: each %s\n", first, final, last)
		}
	}
	for _, create := range inOrder(p) {
		name, text := w.nameClaim(create.Name, create.Pool), describeClaim(&create)
		if text != last {
			flush()
			first, last = name, text
		}
		final = name
	}
	flush()
}

func describeClaim(c *command.CreateClaim) string {
	parts := []string{"for " + cmp.Or(seats(c.Seats), "nobody")}
	for _, e := range c.Requirements {
		key := short(e.Key)
		list, finite := e.Values.Listed()
		if finite && len(list) > 0 {
			parts = append(parts, key+" "+strings.Join(list, "|"))
			continue
		}
		parts = append(parts, key+" "+e.Values.String())
	}
	for _, l := range c.Labels {
		if _, asked := c.Requirements.Get(l.Key); !asked && !strings.HasPrefix(l.Key, "karpenter.sh/") {
			parts = append(parts, "label "+l.Key+"="+l.Value)
		}
	}
	if c.Replaces != "" {
		parts = append(parts, fmt.Sprintf("in place of nodes that go (%s)", c.Reason))
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", from $%.3f", c.Price)
}

func short(key string) string {
	switch key {
	case cluster.InstanceTypeLabel:
		return "type"
	case cluster.ZoneLabel:
		return "zone"
	case cluster.CapacityTypeLabel:
		return "capacity"
	case cluster.HostnameLabel:
		return "host"
	case reservationLabel:
		return "reservation"
	}
	return key
}

func seats(list []cluster.Seat) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = fmt.Sprintf("%s×%d", s.Class, s.Count)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func (w *world) commandLine(c command.Command, status bool) string {
	switch c := c.(type) {
	case command.LaunchInstance:
		return "launch " + w.called(c.Claim)
	case command.Register:
		if c.Untainted {
			return "register " + w.called(c.Claim) + ", which came without its taint"
		}
		if c.KeepFor != "" {
			return "register " + w.called(c.Claim) + ", which is kept for its move"
		}
		return "register " + w.called(c.Claim)
	case command.Open:
		return "open " + w.called(c.Node)
	case command.Initialize:
		return "initialize " + w.called(c.Claim)
	case command.Adopt:
		return "adopt " + w.called(c.Claim)
	case command.Fence:
		return fmt.Sprintf("fence %s (%s)", w.called(c.Node), c.Reason)
	case command.Unfence:
		if !c.RestUntil.IsZero() {
			return fmt.Sprintf("unfence %s, which rests for %s", w.called(c.Node), c.RestUntil.Sub(w.now))
		}
		return "unfence " + w.called(c.Node)
	case command.WritePoolHash:
		return fmt.Sprintf("stamp pool %s with %s", c.Pool, c.Hash)
	case command.WriteClaimHash:
		return fmt.Sprintf("stamp %s with %s", w.called(c.Claim), c.Hash)
	case command.DeleteClaim:
		return fmt.Sprintf("delete %s (%s: %s)", w.called(c.Claim), c.Reason, w.renamed(render.Text(c.Text)))
	case command.Evict:
		if c.Delete {
			return fmt.Sprintf("evict %s now, with %s to go", w.renamed(c.Name), c.Grace)
		}
		return "evict " + w.renamed(c.Name)
	case command.Terminate:
		if c.Claim+c.Node == "" {
			return "terminate instance " + w.renamed(c.ProviderID)
		}
		return "terminate " + w.claimOrNode(c.Claim, c.Node)
	case command.Release:
		return "release " + w.claimOrNode(c.Claim, c.Node)
	case command.SetClaim:
		return w.tellLine(c)
	case command.Nominate:
		if c.Node == "" {
			return fmt.Sprintf("tell %s that no node is for it", c.Name)
		}
		return fmt.Sprintf("tell %s that %s is for it", c.Name, w.called(c.Node))
	case command.Bind:
		return fmt.Sprintf("bind %s to %s", c.Name, w.called(c.Node))
	case command.DeleteNode:
		return fmt.Sprintf("delete node %s (%s: %s)", w.called(c.Node), c.Reason, w.renamed(render.Text(c.Text)))
	case command.SetPool:
		if status {
			return w.statusLine(c)
		}
	}
	return ""
}

func (w *world) claimOrNode(claim, node string) string {
	if claim != "" {
		return w.called(claim)
	}
	return "node " + node
}

func (w *world) statusLine(c command.SetPool) string {
	out := fmt.Sprintf("status of %s: nodes=%d %s", c.Pool, c.Status.Nodes, w.names.String(c.Status.Resources))
	for _, cond := range c.Status.Conditions {
		out += fmt.Sprintf("; %s %s", cond.Type, cond.Status)
		if text := render.Text(cond.Text); text != "" {
			out += " (" + text + ")"
		}
	}
	return out
}

// renamed puts the short names into a text.
func (w *world) renamed(text string) string {
	for _, name := range slices.Sorted(maps.Keys(w.alias)) {
		text = strings.ReplaceAll(text, name, w.alias[name])
	}
	return text
}

func (w *world) printPlacement(out *strings.Builder, p *schedule.Placement) {
	lines := make(map[string]int)
	var order []string
	count := func(line string) {
		if lines[line] == 0 {
			order = append(order, line)
		}
		lines[line]++
	}
	for _, a := range p.Assigned {
		count(fmt.Sprintf("assign %s×%%d to %s\n", a.Pod.Class.Key, w.called(a.Host)))
	}
	for i := range p.Unplaced {
		u := &p.Unplaced[i]
		count(fmt.Sprintf("no place for %s×%%d: %s\n", u.Pod.Class.Key, strings.ReplaceAll(render.Unplaced(u),
			"%", "%%")))
	}
	for _, line := range order {
		fmt.Fprintf(out, line, lines[line])
	}
}

// show tells the state of the world: claims, nodes and pods.
func (w *world) show() string {
	out := new(strings.Builder)
	names := slices.SortedFunc(maps.Keys(w.claims), func(a, b string) int {
		return strings.Compare(w.called(a), w.called(b))
	})
	for _, name := range names {
		fmt.Fprintln(out, w.claimLine(w.claims[name]))
	}
	pending := make(map[string]int)
	for _, p := range w.pods {
		if p.IsPending() {
			pending[p.Class.Key]++
		}
	}
	for _, class := range slices.Sorted(maps.Keys(pending)) {
		fmt.Fprintf(out, "pending: %s×%d\n", class, pending[class])
	}
	if out.Len() == 0 {
		return "an empty cluster\n"
	}
	return out.String()
}

func (w *world) claimLine(c *cluster.Claim) string {
	state := "created"
	for _, kind := range []string{cluster.Launched, cluster.Registered, cluster.Initialized} {
		if c.Is(kind) {
			state = strings.ToLower(kind)
		}
	}
	if !c.Deleting.IsZero() {
		state += ", leaving"
	}
	line := w.called(c.Name) + " " + state
	for _, key := range []string{cluster.InstanceTypeLabel, cluster.ZoneLabel, cluster.CapacityTypeLabel} {
		if value, ok := c.Labels.Get(key); ok {
			line += " " + value
		}
	}
	on := make(map[string]int)
	for _, p := range w.pods {
		if p.Node == c.Name && p.UsesRoom() {
			on[p.Class.Key]++
		}
	}
	for _, class := range slices.Sorted(maps.Keys(on)) {
		line += fmt.Sprintf(" %s×%d", class, on[class])
	}
	return line
}

// entry reads key:Op:a|b, or key:Op.
func entry(text string) (key string, values require.Values, err error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) < 2 {
		return "", values, fmt.Errorf("%q is not key:Operator:value|value", text)
	}
	var list []string
	if len(parts) == 3 {
		list = strings.Split(parts[2], "|")
	}
	values, ok := require.Make(require.Operator(parts[1]), list)
	if !ok {
		return "", values, fmt.Errorf("%q: the operator or its values are wrong", text)
	}
	return long(parts[0]), values, nil
}

// long is the inverse of short.
func long(key string) string {
	switch key {
	case "type":
		return cluster.InstanceTypeLabel
	case "zone":
		return cluster.ZoneLabel
	case "capacity":
		return cluster.CapacityTypeLabel
	case "host":
		return cluster.HostnameLabel
	}
	return key
}
