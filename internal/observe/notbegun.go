package observe

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// noteNotBegun takes in which moves of the last search were not begun: their nodes stay, and each is told why.
func (o *Observer) noteNotBegun(s *cluster.Snapshot, list []disrupt.GivenUp) {
	ls := o.state.Search.Load()
	if ls == nil || len(list) == 0 {
		return
	}
	with := ls.Without(s, list)
	o.state.Search.Store(with)
	o.logBlocked(with, with.NotBegun)
}
