package loop

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

// fileCounter counts the files that it is given.
type fileCounter struct {
	cases []*replay.Case
	fails bool
	// during is called while one is written.
	during func()
}

func (s *fileCounter) Save(c *replay.Case) (string, error) {
	s.cases = append(s.cases, c)
	if s.during != nil {
		s.during()
	}
	if s.fails {
		return "", errors.New("the disk is full")
	}
	return fmt.Sprint("file ", len(s.cases)), nil
}

// one and another are two mistakes; what they say is not what tells them apart.
func one(say string)     { panic(say) }
func another(say string) { panic(say) }

// A file is written once for each mistake: for each step and place in the program. Who fails twice in the same place,
// for other pods and with other words, makes the same mistake.
func TestOneFileForEachMistake(t *testing.T) {
	st := newLoopWorld(t, 0)
	kept := &fileCounter{}
	st.loop.Recorder = kept
	s := st.book.Snapshot()
	fail := func(step, say string, mistake func(string)) {
		s.Now = s.Now.Add(time.Second)
		f := recoverPanic(step, func() { mistake(say) })
		st.loop.saveSnapshotFile(f, &replay.Case{Snapshot: s})
	}
	for i := range 3 {
		fail(plan.StepMake, fmt.Sprint("pod ", i), one)
		s.Now = s.Now.Add(time.Hour)
	}
	if len(kept.cases) != 1 {
		t.Errorf("%d files about one mistake", len(kept.cases))
	}
	fail(plan.StepMake, "pod 0", another)
	fail(plan.StepCheck, "pod 0", one)
	if len(kept.cases) != 3 {
		t.Errorf("%d files about three mistakes", len(kept.cases))
	}
	// One that could not be written is tried again after a while.
	kept.fails = true
	fail(plan.StepSearch, "x", one)
	fail(plan.StepSearch, "x", one)
	kept.fails = false
	if len(kept.cases) != 4 {
		t.Errorf("%d tries within a second", len(kept.cases)-3)
	}
	s.Now = s.Now.Add(saveRetryAfter)
	fail(plan.StepSearch, "x", one)
	if fail(plan.StepSearch, "x", one); len(kept.cases) != 5 {
		t.Errorf("%d tries, want two", len(kept.cases)-3)
	}
	// While one is written, no other is.
	kept.during = func() { fail(plan.StepPass, "y", another) }
	fail(plan.StepPass, "y", one)
	kept.during = nil
	if len(kept.cases) != 6 {
		t.Errorf("%d files are written at the same time", len(kept.cases)-5)
	}
	if fail(plan.StepPass, "y", another); len(kept.cases) != 7 {
		t.Error("what was not written because of another is not written later")
	}
}

func TestRecordsAreBounded(t *testing.T) {
	r := &saveLog{}
	for i := range mostSaved + 5 {
		what := fmt.Sprint(i)
		if !r.begin(what, noon(time.Duration(i))) {
			t.Fatalf("mistake %d is not written", i)
		}
		r.end(what, true)
	}
	if len(r.of) != mostSaved || !r.of[fmt.Sprint(mostSaved+4)].done || r.of["4"].done {
		t.Errorf("%d are remembered", len(r.of))
	}
}

// Where a mistake of the runtime happens is known as well.
func TestFramesOfAMistake(t *testing.T) {
	var none *cluster.Snapshot
	found := make(map[string]bool)
	for range 2 {
		found[recoverPanic(plan.StepMake, func() { _ = none.Rev }).Frames] = true
	}
	if len(found) != 1 || found[""] {
		t.Errorf("frames %v", found)
	}
	if a, b := recoverPanic("", func() { one("") }).Frames, recoverPanic("", func() { another("") }).Frames; a == b {
		t.Errorf("both have the frames %q", a)
	}
}
