package machine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
)

type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func TestMemoryIsLearnt(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	memory := machine.NewMemory(c.now)
	s := machine.NewShapes(settings(), memory)
	class := classOf(awsv1.AMIFamilyAL2023)
	class.Status.AMIs = []awsv1.AMI{{ID: "ami-1"}}
	capacity := func() string { return shape(t, s, "m5.large", class).Capacity.Memory().String() }

	if got := capacity(); got != "7577Mi" {
		t.Fatalf("estimate %s, want 7577Mi", got)
	}
	steps := []struct {
		what, kind, image, seen, want string
		news                          bool
	}{
		{"the first node", "m5.large", "ami-1", "7910184Ki", "7910184Ki", true},
		{"a node with more", "m5.large", "ami-1", "7920000Ki", "7910184Ki", false},
		{"a node with less", "m5.large", "ami-1", "7900000Ki", "7900000Ki", true},
		{"the same again", "m5.large", "ami-1", "7900000Ki", "7900000Ki", false},
		{"another image", "m5.large", "ami-2", "7000000Ki", "7900000Ki", true},
		{"another type", "m5.xlarge", "ami-1", "15000000Ki", "7900000Ki", true},
		{"a node that reports nothing", "m5.large", "ami-1", "0", "7900000Ki", false},
	}
	for _, step := range steps {
		before := s.Revision()
		memory.Learn(step.kind, step.image, resource.MustParse(step.seen))
		if news := s.Revision() != before; news != step.news {
			t.Errorf("%s: revision changed: %v, want %v", step.what, news, step.news)
		}
		if got := capacity(); got != step.want {
			t.Errorf("%s: capacity %s, want %s", step.what, got, step.want)
		}
	}

	// What pods may use follows from what was seen.
	if left := shape(t, s, "m5.large", class).Allocatable(); left.Memory().Value() != 7900000<<10-(11*29+255+100)<<20 {
		t.Errorf("allocatable memory %s", left.Memory())
	}
}

func TestMemoryIsForgotten(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	memory := machine.NewMemory(c.now)
	memory.Learn("m5.large", "ami-1", resource.MustParse("7Gi"))
	c.Time = c.Add(59 * 24 * time.Hour)
	memory.Learn("m5.large", "ami-1", resource.MustParse("7Gi")) // Seen again: it holds on.
	c.Time = c.Add(59 * 24 * time.Hour)
	before := memory.Revision()
	if bytes, ok := memory.Of("m5.large", "ami-1"); !ok || bytes != 7<<30 {
		t.Fatalf("after 59 days: %d, %v", bytes, ok)
	}
	c.Time = c.Add(24 * time.Hour)
	if _, ok := memory.Of("m5.large", "ami-1"); ok {
		t.Error("after 60 days it is still believed")
	}
	if memory.Revision() == before {
		t.Error("forgetting did not change the revision")
	}
	memory.Learn("m5.large", "ami-1", resource.MustParse("8Gi"))
	if bytes, _ := memory.Of("m5.large", "ami-1"); bytes != 8<<30 {
		t.Errorf("learnt anew: %d, want what the new node has", bytes)
	}
}
