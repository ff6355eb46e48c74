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
	Make    func(*cluster.Snapshot, plan.Policy, *plan.Plan, *disrupt.Proposal) plan.Plan
	Search  func(*cluster.Snapshot, plan.Policy) disrupt.Proposal
	Check   func(plan.Plan, *cluster.Snapshot) plan.Plan
	Minimal func(*cluster.Snapshot, plan.Policy) plan.Plan
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
	if p.Minimal == nil {
		p.Minimal = plan.MakeMinimal
	}
	return p
}

// recoverPanic runs f; if it panics, it returns what it knows of it. What Go can't recover from (no memory, no stack, a
// map written by two at the same time) still ends the process.
func recoverPanic(step string, f func()) (failure *plan.PlannerFailure) {
	defer func() {
		if r := recover(); r != nil {
			failure = &plan.PlannerFailure{Step: step, Panic: fmt.Sprint(r), Stack: string(debug.Stack()),
				Frames: frames()}
		}
	}()
	f()
	return nil
}

// mostFrames is how many functions tell one mistake from another.
const mostFrames = 8

// frames lists the innermost functions that are panicking, with their lines, up to recoverPanic. It is called where the
// panic is recovered.
func frames() string {
	pcs := make([]uintptr, 64)
	list := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	var out []string
	for panics, more := false, true; more && len(out) < mostFrames; {
		var f runtime.Frame
		f, more = list.Next()
		switch {
		case panics && strings.HasSuffix(f.Function, "/loop.recoverPanic"):
			more = false
		case f.Function == "runtime.gopanic":
			panics, out = true, nil // what was called before is about the recovery
		case panics && !strings.HasPrefix(f.Function, "runtime."):
			out = append(out, fmt.Sprintf("%s:%d", f.Function, f.Line))
		}
	}
	return strings.Join(out, " ")
}

// reportFailure tells that something has failed.
func (l *Loop) reportFailure(f *plan.PlannerFailure) {
	recoverPanic(plan.StepObserve, func() { l.Observer.PlannerFailed(*f) })
}

// observe tells something. Who tells people must not keep others from their nodes.
func (l *Loop) observe(tell func()) {
	if f := recoverPanic(plan.StepObserve, tell); f != nil {
		l.reportFailure(f)
	}
}

// snapshot is the world as it is known now; ok is false if that can't be had, which has then been told.
func (l *Loop) snapshot() (s *cluster.Snapshot, ok bool) {
	if f := recoverPanic(plan.StepSnapshot, func() { s = l.World.Snapshot() }); f != nil {
		l.reportFailure(f)
		return nil, false
	}
	l.newestSnapshot.Store(s)
	return s, true
}

func cut(text string) string {
	if runes := []rune(text); len(runes) > longestMessage {
		return string(runes[:longestMessage]) + "…"
	}
	return text
}
