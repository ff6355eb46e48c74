package sim

import (
	"maps"
	"testing"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestGarbageIsTakenBack: whoever writes garbage over other garbage leaves, in the end, what was there before both.
func TestGarbageIsTakenBack(t *testing.T) {
	s := newSim(1, Options{})
	s.store.create(s.newPool("general", false))
	notes := func() map[string]string {
		pool, _ := find[*v1.NodePool](s.store, pools, "general")
		out := maps.Clone(pool.Annotations)
		delete(out, v1.DoNotDisruptAnnotationKey) // nobody asks for that once the faults are over
		return out
	}
	before := notes()
	for range 300 {
		s.writeGarbage()
	}
	if len(notes()) < 5 {
		t.Fatalf("garbage is in %d annotations: too few to tell anything", len(notes()))
	}
	s.calmAdversaries()
	if after := notes(); !maps.Equal(before, after) {
		t.Errorf("the annotations were %v and are %.200v in the end", before, after)
	}
}
