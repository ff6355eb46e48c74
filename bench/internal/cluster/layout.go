package cluster

import (
	"fmt"
	"math/rand/v2"
)

// Layout is a cluster as it stands before the clock runs: nodes of given types, and which pods are on each. It is drawn
// from a seed, so that every contestant begins with the same one.
type Layout struct {
	Teams []Team
	Hosts []Host
}

// Team is a ReplicaSet: pods of one size.
type Team struct {
	Name string
	// CPU of a pod in thousandths, and its memory in MiB.
	CPU, Memory int64
	// Pods at the beginning, and how many are left of them.
	Pods, Left int
}

// Host is a node.
type Host struct {
	Type machine
	Pods []Tenant
}

// Tenant is a pod on its node.
type Tenant struct {
	Name string
	Team int
	// Leaves says that its owner lets it go when the others are scaled down.
	Leaves bool
}

// machine is an instance type of the peer's simulated cloud and what it leaves for pods.
type machine struct {
	name        string
	cpu, memory int64
	pods        int
}

// machineOf is the type of a family with so many cores. The cloud keeps a tenth of a core and 10 MiB of each machine.
func machineOf(family string, cores int64) machine {
	perCore := map[string]int64{"c": 2048, "s": 4096, "m": 8192}[family]
	return machine{name: fmt.Sprintf("%s-%dx-amd64-linux", family, cores), cpu: 1000*cores - 100,
		memory: perCore*cores - 10, pods: int(16 * cores)}
}

// mixedMachines are the types that manifests/mixed.yaml allows.
func mixedMachines() []machine {
	var out []machine
	for _, cores := range []int64{2, 4, 8, 16} {
		for _, family := range []string{"c", "s", "m"} {
			out = append(out, machineOf(family, cores))
		}
	}
	return out
}

// mixedTeams is how many sizes of pods there are.
const mixedTeams = 20

// seed of every layout: another one gives another cluster of the same kind.
const seed = 5

// Mixed is a cluster of many types of nodes, each filled as far as the pods' order allows, whose owners will let go of
// all but some pods, chosen at random.
func Mixed(pods, left int) *Layout {
	dice := rand.New(rand.NewPCG(seed, uint64(pods)))
	l := &Layout{}
	for i := range mixedTeams {
		cpu := []int64{100, 250, 250, 500, 500, 750, 1000, 1500, 1900}[dice.IntN(9)]
		perCore := []int64{1024, 2048, 2048, 4096, 6144}[dice.IntN(5)]
		l.Teams = append(l.Teams, Team{Name: teamName(i), CPU: cpu, Memory: cpu * perCore / 1000})
	}
	machines := mixedMachines()
	var free []machine
	for _, p := range dice.Perm(pods) {
		team := p % mixedTeams
		size := l.Teams[team]
		h := firstFit(free, size)
		for h == len(free) {
			// A type that is too small for the pod is drawn again.
			if m := machines[dice.IntN(len(machines))]; fits(m, size) {
				l.Hosts = append(l.Hosts, Host{Type: m})
				free = append(free, m)
				break
			}
		}
		free[h].cpu -= size.CPU
		free[h].memory -= size.Memory
		free[h].pods--
		l.seat(h, team)
	}
	l.choose(dice, pods-left)
	return l
}

// Uniform is a cluster of so many nodes of one type, which the pods fill.
func Uniform(nodes, pods int) *Layout {
	m := machineOf("s", 2)
	perNode := (pods + nodes - 1) / nodes
	l := &Layout{}
	for i := range teams {
		l.Teams = append(l.Teams, Team{Name: teamName(i), CPU: m.cpu / int64(perNode),
			Memory: m.memory / int64(perNode)})
	}
	for h := range nodes {
		l.Hosts = append(l.Hosts, Host{Type: m})
		for p := h * perNode; p < min(pods, (h+1)*perNode); p++ {
			l.seat(h, p%teams)
		}
	}
	return l
}

func fits(m machine, t Team) bool { return m.cpu >= t.CPU && m.memory >= t.Memory && m.pods > 0 }

// firstFit is the first machine with room, or the number of machines.
func firstFit(free []machine, t Team) int {
	for i, m := range free {
		if fits(m, t) {
			return i
		}
	}
	return len(free)
}

// seat puts the team's next pod on a node.
func (l *Layout) seat(host, team int) {
	t := &l.Teams[team]
	l.Hosts[host].Pods = append(l.Hosts[host].Pods, Tenant{Name: fmt.Sprintf("%s-ready-%d", t.Name, t.Pods),
		Team: team})
	t.Pods++
	t.Left++
}

// choose draws the pods that will leave.
func (l *Layout) choose(dice *rand.Rand, count int) {
	var all []*Tenant
	for h := range l.Hosts {
		for p := range l.Hosts[h].Pods {
			all = append(all, &l.Hosts[h].Pods[p])
		}
	}
	for _, i := range dice.Perm(len(all))[:count] {
		all[i].Leaves = true
		l.Teams[all[i].Team].Left--
	}
}
