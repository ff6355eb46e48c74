package observe

import (
	"github.com/go-logr/logr"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// otherPoolLog tells of NodePools that another controller serves: once of each, and nowhere but in the log, because
// nothing is written about another's objects.
type otherPoolLog struct {
	log       logr.Logger
	elsewhere map[cluster.ClassRef]string
	told      map[cluster.OtherPool]bool
}

func newOtherPoolLog(log logr.Logger, elsewhere map[cluster.ClassRef]string) otherPoolLog {
	return otherPoolLog{log: log, elsewhere: elsewhere, told: make(map[cluster.OtherPool]bool)}
}

// observe takes in the pools that there are now. One that comes back later is told about again.
func (o *otherPoolLog) observe(pools []cluster.OtherPool) {
	there := make(map[cluster.OtherPool]bool, len(pools))
	for _, p := range pools {
		there[p] = true
		if o.told[p] {
			continue
		}
		words := []any{"NodePool", p.Name, "NodeClass", p.NodeClass.Kind + "." + p.NodeClass.Group}
		if hint := o.elsewhere[cluster.ClassRef{Group: p.NodeClass.Group, Kind: p.NodeClass.Kind}]; hint != "" {
			words = append(words, "hint", hint)
		}
		o.log.Info("this NodePool belongs to another controller and is left alone: its NodeClass is of a kind that "+
			"this provider does not have", words...)
	}
	o.told = there
}
