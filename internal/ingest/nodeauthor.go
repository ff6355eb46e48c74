package ingest

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// addCauseAuthor adds to a cause who wrote the label that changed, or the allocatable that shrank. A label that was
// taken away has no writer any more. The lock is held.
func (b *machineState) addCauseAuthor(node string, cause *cluster.Cause) {
	e := b.nodes[node]
	if e == nil {
		return
	}
	switch {
	case cause.Kind == cluster.CauseLabel && cause.Is != "":
		cause.By = decode.AuthorOf(e.FieldAuthors, decode.WroteLabel+cause.Label)
	case cause.Kind == cluster.CauseShrunk:
		cause.By = decode.AuthorOf(e.FieldAuthors, decode.WroteAllocatable+cause.Resource)
	}
}
