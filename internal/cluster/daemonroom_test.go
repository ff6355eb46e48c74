package cluster

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// A DaemonSet's pod for which kube-scheduler has made others leave a node has that room, also where these are still
// there.
func TestPromisedRoomOfADaemonSet(t *testing.T) {
	class := func(cpu int64) *PodClass {
		return &PodClass{Key: "c", Requests: resource.Vector{resource.CPU: cpu}, Terms: []require.Set{{}}}
	}
	for _, x := range []struct {
		name string
		pod  *Pod
		runs int64
		free int64
	}{
		{name: "no pod yet", free: 3000},
		{name: "a pod with room on the node", pod: &Pod{Nominated: "n"}, free: 3000},
		{name: "no room beside those who run", runs: 3500, free: 500},
		{name: "room that others have to leave", runs: 3500, pod: &Pod{Nominated: "n"}, free: -500},
		{name: "room on another node", runs: 3500, pod: &Pod{Nominated: "m"}, free: 500},
	} {
		s := &Snapshot{
			Nodes:   []*Node{{Name: "n", Allocatable: resource.Vector{resource.CPU: 4000}}},
			Daemons: []*Daemon{{UID: "d", Class: class(1000)}},
		}
		if x.runs > 0 {
			s.Pods = append(s.Pods, &Pod{UID: "runs", Node: "n", Class: class(x.runs)})
		}
		if x.pod != nil {
			x.pod.UID, x.pod.Daemon, x.pod.Owner, x.pod.Class = "daemon", true, "d", class(1000)
			s.Pods = append(s.Pods, x.pod)
		}
		hosts := s.Seal().Without().Hosts()
		if len(hosts) != 1 || hosts[0].Free[resource.CPU] != x.free {
			t.Errorf("%s: %+v, want %d of CPU free", x.name, hosts[0].Free, x.free)
		}
	}
}
