// Package contestant knows the programs that are compared: how each is built, which definitions it brings and how it is
// started. It runs the go command for the peer and reads the peer's files from the module cache; nothing of the peer
// lives in this repository.
package contestant

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tenon-sh/tenon/bench/internal/process"
	"github.com/tenon-sh/tenon/bench/internal/report"
)

// Contestant is an autoscaler that can be given work.
type Contestant struct {
	Name string
	// Profiles says that the controller serves profiles of itself.
	Profiles bool
	// CRDs are the folders with its CustomResourceDefinitions.
	CRDs    []string
	command func(kubeconfig string, metricsPort, readyPort int) []string
	env     func(kubeconfig string, metricsPort, readyPort int) []string
	// flags are added to the command, and win over what is there.
	flags []string
}

// Elected has the contestant act only while it holds the lease in the namespace, as in a cluster that has several
// candidates.
func (c Contestant) Elected(namespace string) Contestant {
	c.flags = []string{"--disable-leader-election=false", "--leader-election-namespace=" + namespace}
	return c
}

// Start runs the contestant's controller against a cluster.
func (c Contestant) Start(kubeconfig, logLevel, log string) (*process.Process, error) {
	ports, err := process.FreePorts(2)
	if err != nil {
		return nil, err
	}
	return process.Start(process.Spec{
		Name:      c.Name,
		Command:   slices.Concat(c.command(kubeconfig, ports[0], ports[1]), c.flags),
		Env:       append(c.env(kubeconfig, ports[0], ports[1]), "LOG_LEVEL="+logLevel),
		Log:       log,
		ReadyPort: ports[1], MetricsPort: ports[0],
	})
}

// Tenon is this repository's controller, with the peer's instance types. It can always be profiled: serving profiles
// costs nothing until somebody asks for one.
func Tenon(binary, crds, instanceTypes string) (Contestant, error) {
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil || len(files) == 0 {
		return Contestant{}, fmt.Errorf("no CustomResourceDefinitions in %s: run in the folder bench of a clone", crds)
	}
	return Contestant{
		Name: report.Tenon, Profiles: true,
		CRDs: []string{crds},
		command: func(kubeconfig string, metricsPort, readyPort int) []string {
			return []string{
				binary, "controller",
				"--kubeconfig=" + kubeconfig,
				"--bind-address=127.0.0.1",
				"--metrics-port=" + strconv.Itoa(metricsPort),
				"--health-probe-port=" + strconv.Itoa(readyPort),
				"--disable-leader-election",
				"--enable-profiling",
				"--instance-types-file-path=" + instanceTypes,
			}
		},
		env: func(string, int, int) []string { return nil },
	}, nil
}

// Peer is Karpenter with its own simulated cloud, whose instance types are part of its executable. Of its metrics and
// probes only the ports can be set and not the address (its operator listens on ":PORT"), so those two ports, and they
// alone, are open to the machine's network while it runs; docs/tasks/benchmark.md says so.
func Peer(binary string, module Module) Contestant {
	return Contestant{
		Name:    report.Peer,
		CRDs:    []string{module.path("pkg", "apis", "crds"), module.path("kwok", "apis", "crds")},
		command: func(string, int, int) []string { return []string{binary} },
		env: func(kubeconfig string, metricsPort, readyPort int) []string {
			return []string{
				"KUBECONFIG=" + kubeconfig,
				"METRICS_PORT=" + strconv.Itoa(metricsPort),
				"HEALTH_PROBE_PORT=" + strconv.Itoa(readyPort),
				"DISABLE_LEADER_ELECTION=true",
				"SYSTEM_NAMESPACE=kube-system",
				"KUBERNETES_MIN_VERSION=1.19.0-0",
			}
		},
	}
}
