package topology

import (
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// Three pods of a pod set wait; those of web and of db are held. On a node that is up all may take seats. On one that
// is on its way, or kept for a move, those that are held may only if it was made for their workload.
func TestWhoMaySitWhileHeld(t *testing.T) {
	made := func(owners ...string) (out []cluster.MadeFor) {
		for _, owner := range owners {
			out = append(out, cluster.MadeFor{Owner: owner, Try: 1})
		}
		return out
	}
	for name, c := range map[string]struct {
		host cluster.Host
		want []string
	}{
		"on its way for others":            {cluster.Host{MadeFor: made("api")}, []string{"api"}},
		"on its way for one of them":       {cluster.Host{MadeFor: made("api", "db")}, []string{"api", "db"}},
		"on its way for all":               {cluster.Host{MadeFor: made("db", "web")}, []string{"api", "web", "db"}},
		"on its way, for nobody knows who": {cluster.Host{}, []string{"api", "web", "db"}},
		"up": {cluster.Host{Initialized: true, MadeFor: made("api")},
			[]string{"api", "web", "db"}},
		"up, and kept for a move": {cluster.Host{Initialized: true, Reserved: true, MadeFor: made("api")},
			[]string{"api"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, held := &PodSet{}, make(map[string]bool)
			for _, owner := range []string{"web", "api", "db"} {
				set.Pods = append(set.Pods, &cluster.Pod{UID: owner, Owner: owner})
				held[owner] = owner != "api"
			}
			set.PutHeldLast(func(p *cluster.Pod) (string, bool) { return p.Owner, held[p.UID] })
			var got []string
			for _, p := range set.TakePods(set.MaySit(&Host{Host: &c.host})) {
				got = append(got, p.UID)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v may, want %v", got, c.want)
			}
			if rest := len(set.Pods); rest != 3-len(c.want) || set.notHeld() != 0 {
				t.Errorf("%d pods are left, %d of them not held", rest, set.notHeld())
			}
		})
	}
}
