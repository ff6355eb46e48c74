package cluster

import (
	"reflect"
	"testing"
)

// room tests that the pods fit their nodes and counts them.
func room(t *testing.T, l *Layout) (pods, leaving int) {
	t.Helper()
	for i, h := range l.Hosts {
		free := h.Type
		for _, p := range h.Pods {
			if !fits(free, l.Teams[p.Team]) {
				t.Errorf("the pods of node %d do not fit a %s", i, h.Type.name)
			}
			free.cpu -= l.Teams[p.Team].CPU
			free.memory -= l.Teams[p.Team].Memory
			free.pods--
			pods++
			if p.Leaves {
				leaving++
			}
		}
		if len(h.Pods) == 0 {
			t.Errorf("node %d is empty", i)
		}
	}
	return pods, leaving
}

func TestMixedLayout(t *testing.T) {
	for _, left := range []int{700, 250} {
		l := Mixed(1000, left)
		pods, leaving := room(t, l)
		kept := 0
		for _, team := range l.Teams {
			kept += team.Left
		}
		if pods != 1000 || leaving != 1000-left || kept != left {
			t.Errorf("%d pods of which %d leave and the owners keep %d; want 1000 and %d", pods, leaving, kept, left)
		}
		types := map[string]bool{}
		for _, h := range l.Hosts {
			types[h.Type.name] = true
		}
		if len(types) < 6 || len(l.Hosts) < 30 {
			t.Errorf("%d nodes of %d types are no mixture", len(l.Hosts), len(types))
		}
		if !reflect.DeepEqual(l, Mixed(1000, left)) {
			t.Error("two layouts of the same kind differ")
		}
	}
}

func TestUniformLayout(t *testing.T) {
	l := Uniform(500, 1000)
	pods, leaving := room(t, l)
	if len(l.Hosts) != 500 || pods != 1000 || leaving != 0 {
		t.Errorf("%d nodes, %d pods of which %d leave", len(l.Hosts), pods, leaving)
	}
	free := l.Hosts[0].Type
	for _, p := range l.Hosts[0].Pods {
		free.cpu -= l.Teams[p.Team].CPU
	}
	if fits(free, l.Teams[0]) {
		t.Error("the pods leave room on their node, so that the nodes could become fewer")
	}
}
