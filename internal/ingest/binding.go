package ingest

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/change"
)

// podsNow lists the pods. One that we are binding counts as bound, before the watch has shown it: its room must not be
// given to another. The lock is held.
func (b *Book) podsNow() []*cluster.Pod {
	all := b.pods.All()
	own := false
	for c := range b.commands.Each {
		bind, ok := c.(command.Bind)
		if !ok {
			continue
		}
		i, found := slices.BinarySearchFunc(all, bind.UID, func(p *cluster.Pod, uid string) int {
			return strings.Compare(p.UID, uid)
		})
		if !found || all[i].Node != "" {
			continue
		}
		if !own {
			all, own = slices.Clone(all), true
		}
		p := *all[i]
		p.Node, p.Nominated, p.Unschedulable, p.SchedulerSeen, p.Binding = b.sharedNodeName(bind.Node), "",
			false, true, true
		all[i] = &p
	}
	return all
}

// bindChange says what it means that a pod begins to be bound, or is bound no longer although the watch has not shown
// it. The lock is held.
func (b *Book) bindChange(c command.Command) change.Kind {
	bind, ok := c.(command.Bind)
	if !ok {
		return change.None
	}
	if p, found := b.pods.Get(bind.UID); !found || p.Node != "" {
		return change.None
	}
	return change.Demand | change.Room
}
