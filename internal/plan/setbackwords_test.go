package plan_test

import (
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// setback: setback web tries=2 taint=agent=yes:NoExecute next=30s [standing=default#1,default#2] [coming=1] [well] says that nodes made for the
// owner of the pods web are in vain. The newest that stands is the witness. setback web none takes it back.
func (n *narrator) setback(name string, words []string) {
	b := &cluster.Setback{Owner: "rs-" + name, Kind: "ReplicaSet", Name: "default/" + name, Since: n.w.now}
	f := cluster.VainNode{At: n.w.now, Pool: "default", Claim: "default-gone"}
	if n.w.setbacks == nil {
		n.w.setbacks = make(map[string]*cluster.Setback)
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "none":
			delete(n.w.setbacks, b.Owner)
			return
		case "tries":
			b.Tries = n.integer(value)
		case "next":
			b.Next = n.w.now.Add(n.duration(value))
		case "soon":
			b.Soon = n.w.now.Add(n.duration(value))
		case "coming":
			b.Coming = n.integer(value)
		case "well":
			b.Well = true
		case "standing":
			for _, alias := range strings.Split(value, ",") {
				b.Standing = append(b.Standing, n.w.realName(alias))
			}
			b.Witness = b.Standing[len(b.Standing)-1]
			f.Claim, f.Node = b.Witness, alias(value)
		case "taint":
			f.Cause = cluster.Cause{Kind: cluster.CauseTaint, Taint: n.taint(value), By: "node-agent"}
		case "cordon":
			f.Cause = cluster.Cause{Kind: cluster.CauseCordon}
		default:
			n.fail("setback: unknown word %q", word)
		}
	}
	b.Failures = []cluster.VainNode{f}
	n.w.setbacks[b.Owner] = b
}

// alias is the last of several names.
func alias(list string) string { return list[strings.LastIndex(list, ",")+1:] }

// setbacksNow are the setbacks as a snapshot has them.
func (w *world) setbacksNow() map[string]*cluster.Setback {
	out := make(map[string]*cluster.Setback, len(w.setbacks))
	for owner, b := range w.setbacks {
		c := *b
		if !c.Soon.IsZero() && !w.now.Before(c.Soon.Add(time.Nanosecond)) {
			c.Well = true
		}
		out[owner] = &c
	}
	return out
}
