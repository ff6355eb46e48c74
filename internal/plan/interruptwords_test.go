package plan_test

import (
	"github.com/tenon-sh/tenon/internal/cluster"
)

// interruptHappens: interrupt NODE KIND [in=FOR] [force] (the cloud takes its instance away), spare NODE (it does not
// after all).
func (n *storyRunner) interruptHappens(words []string) bool {
	switch words[0] {
	case "interrupt":
		i := cluster.Interruption{Kind: words[2]}
		for _, word := range words[3:] {
			switch {
			case word == "force":
				i.Force = true
			case len(word) > 3 && word[:3] == "in=":
				i.Deadline = n.w.now.Add(n.duration(word[3:]))
			default:
				n.fail("interrupt: unknown word %q", word)
			}
		}
		n.w.claims[n.w.realName(words[1])].Interruption = i
	case "spare":
		n.w.claims[n.w.realName(words[1])].Interruption = cluster.Interruption{}
	default:
		return false
	}
	return true
}
