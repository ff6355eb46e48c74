package loop

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
)

// longestMessage is how much of a panic people are told in an event.
const longestMessage = 200

// Planner is who decides: package plan, unless a field says otherwise. Tests have one that fails.
type Planner struct {
	Make   func(*cluster.Snapshot, plan.Policy, *plan.Plan, *disrupt.Proposal) plan.Plan
	Search func(*cluster.Snapshot, plan.Policy) disrupt.Proposal
	Check  func(plan.Plan, *cluster.Snapshot) plan.Plan
	Bare   func(*cluster.Snapshot, plan.Policy) plan.Plan
}

func (l *Loop) planner() Planner {
	p := l.Planner
	if p.Make == nil {
		p.Make = plan.Make
	}
	if p.Search == nil {
		p.Search = plan.Search
	}
	if p.Check == nil {
		p.Check = plan.Check
	}
	if p.Bare == nil {
		p.Bare = plan.Bare
	}
	return p
}

// guard runs f; if it panics, it returns what it knows of it. What Go can't recover from (no memory, no stack, a map
// written by two at the same time) still ends the process.
func guard(step string, f func()) (broken *plan.Breakdown) {
	defer func() {
		if r := recover(); r != nil {
			broken = &plan.Breakdown{Step: step, Panic: fmt.Sprint(r), Stack: string(debug.Stack()), Frames: frames()}
		}
	}()
	f()
	return nil
}

// mostFrames is how many functions tell one mistake from another.
const mostFrames = 8

// frames lists the innermost functions that are panicking, with their lines, up to the guard. It is called where the
// panic is recovered.
func frames() string {
	pcs := make([]uintptr, 64)
	list := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	var out []string
	for panics, more := false, true; more && len(out) < mostFrames; {
		var f runtime.Frame
		f, more = list.Next()
		switch {
		case panics && strings.HasSuffix(f.Function, "/loop.guard"):
			more = false
		case f.Function == "runtime.gopanic":
			panics, out = true, nil // what was called before is about the recovery
		case panics && !strings.HasPrefix(f.Function, "runtime."):
			out = append(out, fmt.Sprintf("%s:%d", f.Function, f.Line))
		}
	}
	return strings.Join(out, " ")
}

// broke tells that something has failed.
func (l *Loop) broke(b *plan.Breakdown) {
	guard(plan.StepObserve, func() { l.Observer.Broke(*b) })
}

// observe tells something. Who tells people must not keep others from their nodes.
func (l *Loop) observe(tell func()) {
	if b := guard(plan.StepObserve, tell); b != nil {
		l.broke(b)
	}
}

// snapshot is the world as it is known now; ok is false if that can't be had, which has then been told.
func (l *Loop) snapshot() (s *cluster.Snapshot, ok bool) {
	if b := guard(plan.StepSnapshot, func() { s = l.World.Snapshot() }); b != nil {
		l.broke(b)
		return nil, false
	}
	l.newest.Store(s)
	return s, true
}

func cut(text string) string {
	if runes := []rune(text); len(runes) > longestMessage {
		return string(runes[:longestMessage]) + "…"
	}
	return text
}
