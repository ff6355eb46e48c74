package ingest

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
)

// Where a volume is rules out a pool: each pod is told of its own volume, although the pods are of one class.
func TestAPodIsToldWhereItsVolumeIs(t *testing.T) {
	b, clock := market()
	for _, name := range []string{"one", "two"} {
		b.SetVolume(volumeOf("pv-"+name, "sc", in("topology.ebs.csi.aws.com/zone", "eu-west-1a")))
		b.SetVolumeClaim(boundTo(claimOf(name, "sc"), "pv-"+name))
		pod := judgedPod(name)
		pod.Spec.Volumes = mounting(name).Spec.Volumes
		b.SetPod(pod)
	}
	clock.tick(time.Minute)
	s := b.Snapshot()
	p := plan.Make(s, plan.Policy{BatchIdle: time.Second, BatchMax: 10 * time.Second}, nil, nil)
	want := map[string]string{
		"one": `NodePool "default": volume pv-one is in eu-west-1a; this pool has z`,
		"two": `NodePool "default": volume pv-two is in eu-west-1a; this pool has z`,
	}
	if len(p.Placement.Unplaced) != len(want) {
		t.Fatalf("%d pods without a place, want %d", len(p.Placement.Unplaced), len(want))
	}
	classes := make(map[*cluster.PodClass]bool)
	for i := range p.Placement.Unplaced {
		u := &p.Placement.Unplaced[i]
		classes[u.Pod.Class] = true
		if got := render.Unplaced(u); got != want[u.Pod.Name] || u.Volume() != "pv-"+u.Pod.Name {
			t.Errorf("%s is told %q, want %q", u.Pod.Name, got, want[u.Pod.Name])
		}
	}
	if len(classes) != 1 {
		t.Errorf("%d classes, want one", len(classes))
	}
}
