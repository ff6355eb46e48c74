package labtest

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/tenon-sh/tenon/internal/lab"
)

// Labs are the labs of a package whose tests run in parallel:
//
//	var labs = labtest.NewLabs(4)
//
//	func TestMain(m *testing.M) { os.Exit(labs.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		l := labs.New(t)
//		...
//	}
//
// Each test has a lab for itself until it ends. A lab starts when a test needs
// it and no other is free, so one test alone pays for one lab.
type Labs struct {
	// taken has an element for each lab that a test has.
	taken chan struct{}

	mu      sync.Mutex
	free    []*lab.Lab
	started []*lab.Lab
}

// NewLabs makes room for that many labs.
func NewLabs(most int) *Labs { return &Labs{taken: make(chan struct{}, most)} }

// Run runs the tests of the package, ends the labs and returns the exit code.
// The labs also end when the test process is killed.
func (ls *Labs) Run(m *testing.M) (code int) {
	defer func() {
		if err := ls.end(); err != nil && code == 0 {
			code = fail(err)
		}
	}()
	return m.Run()
}

// end ends all labs.
func (ls *Labs) end() error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var errs []error
	for _, running := range ls.started {
		errs = append(errs, running.Close())
	}
	return errors.Join(errs...)
}

// New gives a test a lab of its own with nothing in it, as the function New
// does. It waits while all labs are taken.
func (ls *Labs) New(t testing.TB) *Lab {
	t.Helper()
	select {
	case ls.taken <- struct{}{}:
	case <-t.Context().Done():
		t.Fatal("no lab was free before the test was over")
	}
	running, err := ls.take(t.Context())
	if err != nil {
		<-ls.taken
		t.Fatalf("start a lab: %v", err)
	}
	t.Cleanup(func() { ls.give(running) })
	return open(t, running.Kubeconfig())
}

// take finds a lab that runs, or starts one. The caller may take one.
func (ls *Labs) take(ctx context.Context) (*lab.Lab, error) {
	ls.mu.Lock()
	ls.free = slices.DeleteFunc(ls.free, ended)
	if last := len(ls.free) - 1; last >= 0 {
		found := ls.free[last]
		ls.free = ls.free[:last]
		ls.mu.Unlock()
		return found, nil
	}
	ls.mu.Unlock()
	running, err := lab.StartTemporary(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.started = append(ls.started, running)
	return running, nil
}

func (ls *Labs) give(running *lab.Lab) {
	ls.mu.Lock()
	ls.free = append(ls.free, running)
	ls.mu.Unlock()
	<-ls.taken
}

// ended tells whether a lab is of no use any more.
func ended(running *lab.Lab) bool {
	select {
	case <-running.Done():
		return true
	default:
		return false
	}
}
