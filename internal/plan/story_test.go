package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

var rewrite = flag.Bool("rewrite", false, "write what the stories say into their files; read it before keeping it")

// A story is a file of blocks, separated by empty lines. A block is commands, one a line, then ---- and what they
// print. Lines that begin with # are told to the reader only. The commands are in the switch of tell and in
// words_test.go.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 25 {
		t.Fatalf("found %d stories (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			nominated := tellAll(t, string(raw))
			if *rewrite {
				if err := os.WriteFile(file, []byte(nominated), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if nominated != string(raw) {
				t.Errorf("%s: the story goes differently now:\n%s", file, firstDifference(string(raw), nominated))
			}
		})
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		x, y := lineAt(a, i), lineAt(b, i)
		if x != y {
			return fmt.Sprintf("line %d\nfile: %s\nnow:  %s", i+1, x, y)
		}
	}
	return "no difference"
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}

// tellAll runs the story and returns its text with the outputs as they are now.
func tellAll(t *testing.T, text string) string {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	var out []string
	printed, expecting := new(strings.Builder), false
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		n.line++
		switch {
		case line == "----":
			out = append(out, line)
			out = append(out, strings.Split(strings.TrimRight(printed.String(), "\n"), "\n")...)
			printed.Reset()
			expecting = true
		case line == "":
			out = append(out, line)
			expecting = false
		case expecting:
		case strings.HasPrefix(line, "#"):
			out = append(out, line)
		default:
			out = append(out, line)
			printed.WriteString(n.tell(line))
		}
	}
	if printed.Len() > 0 {
		t.Fatalf("the story ends without ---- for what it printed:\n%s", printed)
	}
	return strings.Join(out, "\n") + "\n"
}

// storyRunner tells one story.
type storyRunner struct {
	t    *testing.T
	w    *world
	line int
	last plan.Plan
	// policy is what plan.Make is told.
	policy plan.Policy
	// found is what a search has found since the last plan.
	found *disrupt.Proposal
	// plans counts the plans that were made.
	plans int
}

func (n *storyRunner) fail(format string, args ...any) {
	n.t.Helper()
	n.t.Fatalf("line %d: %s", n.line, fmt.Sprintf(format, args...))
}

// say tells several lines whose answers nobody needs.
func (n *storyRunner) say(lines ...string) {
	for _, line := range lines {
		n.tell(line)
	}
}

func (n *storyRunner) tell(line string) string {
	words := strings.Fields(line)
	name := ""
	if len(words) > 1 {
		name = words[1]
	}
	switch words[0] {
	case "type":
		n.addType(name, words[2:])
	case "pool":
		n.addPool(name, words[2:])
	case "pods":
		n.addPods(name, words[2:])
	case "daemon":
		n.addDaemon(name, words[2:])
	case "node":
		n.addNode(name, words[2:])
	case "namespace":
		n.addNamespace(name, words[2:])
	case "policy":
		n.setPolicy(words[1:])
	case "plan":
		c := &replay.Case{Step: replay.Make, Snapshot: n.w.snapshot(nil), Policy: n.policy, Found: n.found}
		n.last = plan.Make(c.Snapshot, n.policy, nil, n.found)
		// A story is short; of a long drawn history every fiftieth plan is enough.
		if n.plans++; n.plans <= 10 || n.plans%50 == 0 {
			if text := replayed(c, &n.last); text != "" {
				n.fail("%s", text)
			}
		}
		n.found = nil
		return n.w.printPlan(n.last, name == "status") + priceLine(&n.last, name == "price") + n.w.noteLines(&n.last,
			name == "notes")
	case "check":
		n.last = plan.Check(n.last, n.w.snapshot(nil))
		return n.w.printPlan(plan.Plan{Commands: n.last.Commands}, false)
	case "act":
		n.actOnce(name)
	case "settle":
		return n.settle()
	case "tick":
		n.w.now = n.w.now.Add(n.duration(name))
		n.w.reap()
		n.w.rev++
	case "show":
		return n.w.show()
	case "expect":
		return n.expect(words[1:])
	default:
		return n.happen(words)
	}
	return ""
}

// actOnce carries out the last plan, or only the first so many of its new claims.
func (n *storyRunner) actOnce(creates string) {
	limit := -1
	if fences, ok := strings.CutPrefix(creates, "fences="); ok {
		n.w.fenceOnly(&n.last, n.integer(fences))
	} else if creates != "" {
		limit = n.integer(strings.TrimPrefix(creates, "creates="))
	}
	n.w.act(n.last, limit)
	n.last = plan.Plan{}
}

// settle plans and acts until there is nothing to do at this moment.
func (n *storyRunner) settle() string {
	created := 0
	for round := range 30 {
		p := plan.Make(n.w.snapshot(nil), n.policy, nil, nil)
		if len(p.Commands) == 0 && !n.canBind(&p) {
			return fmt.Sprintf("settled after %d rounds, %d claims created\n", round, created)
		}
		for _, create := range inOrder(&p) {
			n.w.nameClaim(create.Name, create.Pool)
			created++
		}
		n.w.act(p, -1)
	}
	n.fail("the cluster does not settle")
	return ""
}

// canBind reports whether some pod would be bound if the plan were carried out.
func (n *storyRunner) canBind(p *plan.Plan) bool {
	for _, a := range p.Placement.Assigned {
		c := n.w.claims[a.Claim]
		if c != nil && c.Is(cluster.Initialized) && n.w.pods[a.Pod.UID].Node == "" {
			return true
		}
	}
	return false
}

// expect fails the test whatever the file says, so that a rewrite can't lose what a story is about.
func (n *storyRunner) expect(words []string) string {
	s := n.w.snapshot(nil)
	have := map[string]string{
		"claims": strconv.Itoa(len(s.Claims)), "nodes": strconv.Itoa(len(s.Nodes)),
		"pending":  strconv.Itoa(len(s.Pending())),
		"commands": strconv.Itoa(len(plan.Make(s, n.policy, nil, nil).Commands)),
	}
	price := 0.0
	for _, c := range s.Claims {
		price += c.Price
	}
	have["price"] = fmt.Sprintf("%.3f", price)
	for _, word := range words {
		key, want, _ := strings.Cut(word, "=")
		if got, known := have[key]; !known || got != want {
			n.fail("expected %s=%s, it is %q", key, want, got)
		}
	}
	return "as expected\n"
}

func (n *storyRunner) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		n.fail("%v", err)
	}
	return d
}

func (n *storyRunner) integer(text string) int {
	i, err := strconv.Atoi(text)
	if err != nil {
		n.fail("%v", err)
	}
	return i
}

// happen is everything that others do to the cluster.
func (n *storyRunner) happen(words []string) string {
	w, verb := n.w, strings.Join(words[:min(2, len(words))], " ")
	arg := words[len(words)-1]
	real := w.realName(arg)
	switch verb {
	case "cloud silent":
		w.silent = true
	case "cloud join":
		w.silent = false
		for _, c := range w.claims {
			if c.ProviderID != "" && w.nodes[c.Name] == nil {
				w.join(c)
			}
		}
	case "cloud refuses":
		w.empty[arg] = true
	case "cloud sells":
		delete(w.empty, arg)
		delete(w.soldOut, arg)
	case "delete node":
		w.nodes[real].Deleting = w.now
	case "delete claim":
		w.deleteClaim(command.DeleteClaim{Claim: real})
	case "delete pod":
		w.podEvent(w.pods[arg])
		delete(w.pods, arg)
	case "lose claim":
		delete(w.claims, real)
		w.lost = w.now
	case "lose instance":
		w.gone[real], w.gone[w.nodes[real].ProviderID] = true, true
	case "cordon node":
		w.nodes[real].Cordoned = true
		w.nodes[real].Taints = append(slices.Clone(w.nodes[real].Taints),
			cluster.Taint{Key: "node.kubernetes.io/unschedulable", Effect: cluster.NoSchedule})
	case "drop taint":
		node := w.nodes[w.realName(words[2])]
		node.Taints = slices.DeleteFunc(slices.Clone(node.Taints), func(t cluster.Taint) bool { return t.Key == arg })
	case "is busy":
		w.busy[w.withRealName(arg)] = true
	case "is done":
		delete(w.busy, w.withRealName(arg))
	case "has failed":
		w.retry[w.withRealName(words[2])] = cluster.Retry{Attempts: 1, NotBefore: w.now.Add(n.duration(words[3]))}
	default:
		if n.lifeHappens(verb, words) {
			return ""
		}
		n.fail("unknown command %q", strings.Join(words, " "))
	}
	return ""
}

// withRealName turns launch/default#1 into the key of the command.
func (w *world) withRealName(key string) string {
	kind, rest, _ := strings.Cut(key, "/")
	return kind + "/" + w.realName(rest)
}
