package controlplane

import (
	"fmt"

	"github.com/tenon-sh/tenon/lab/internal/labdir"
)

// part is one process of the lab: how to run it and how to ask if it is well.
type part struct {
	name   string
	args   []string
	port   int
	scheme string
	health string
}

func (p part) url() string { return p.scheme + "://" + hostPort(p.port) }

// plan is what one start runs.
type plan struct {
	etcd, apiServer, controllerManager part
	// clients are content with an API server that answers at all.
	clients []part
}

func newPlan(dir labdir.Dir, p ports) plan {
	return plan{
		etcd:              etcdPart(dir, p),
		apiServer:         apiServerPart(dir, p),
		controllerManager: controllerManagerPart(dir, p),
		clients:           []part{schedulerPart(dir, p), kwokPart(dir, p)},
	}
}

func etcdPart(dir labdir.Dir, p ports) part {
	client := "https://" + hostPort(p.etcd)
	peer := "https://" + hostPort(p.etcdPeer)
	cert, key, ca := dir.Path("pki", "etcd.crt"), dir.Path("pki", "etcd.key"), dir.Path("pki", "ca.crt")
	return part{
		name: "etcd", port: p.etcd, scheme: "https", health: "/readyz",
		args: []string{
			"--name=lab",
			"--data-dir=" + dir.Path("etcd"),
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=lab=" + peer,
			// The ports differ from run to run; a member of one does not mind.
			"--strict-reconfig-check=false",
			"--cert-file=" + cert, "--key-file=" + key,
			"--client-cert-auth", "--trusted-ca-file=" + ca,
			"--peer-cert-file=" + cert, "--peer-key-file=" + key,
			"--peer-client-cert-auth", "--peer-trusted-ca-file=" + ca,
			// A lab that loses power may lose its data; waiting for the disk
			// would cost every write instead.
			"--unsafe-no-fsync",
			// One member elects itself; the default would let it wait for rivals.
			"--heartbeat-interval=10", "--election-timeout=100",
			"--snapshot-count=100000",
			"--auto-compaction-mode=periodic", "--auto-compaction-retention=10m",
			"--quota-backend-bytes=4294967296",
			"--log-level=warn",
		},
	}
}

func apiServerPart(dir labdir.Dir, p ports) part {
	pki := func(name string) string { return dir.Path("pki", name) }
	return part{
		name: "kube-apiserver", port: p.apiServer, scheme: "https", health: "/readyz",
		args: []string{
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", p.apiServer),
			// The service "kubernetes" can't have a loopback endpoint, and no
			// pod of a lab ever connects to it.
			"--endpoint-reconciler-type=none",
			"--etcd-servers=https://" + hostPort(p.etcd),
			"--etcd-cafile=" + pki("ca.crt"), "--etcd-certfile=" + pki("etcd-client.crt"), "--etcd-keyfile=" +
				pki("etcd-client.key"),
			"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
			"--client-ca-file=" + pki("ca.crt"),
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--service-cluster-ip-range=" + serviceRange,
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + pki("service-account.pub"),
			"--service-account-signing-key-file=" + pki("service-account.key"),
			"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + pki("front-proxy-client.crt"),
			"--proxy-client-key-file=" + pki("front-proxy-client.key"),
			"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"), "--kubelet-client-key=" +
				pki("apiserver-kubelet-client.key"),
			"--enable-aggregator-routing=false",
			"--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000",
			"--profiling=false",
		},
	}
}

func controllerManagerPart(dir labdir.Dir, p ports) part {
	kubeconfig := dir.Path("config", "controller-manager.kubeconfig")
	return part{
		name: "kube-controller-manager", port: p.controllerManager, scheme: "https", health: "/healthz",
		args: append(clientArgs(dir, kubeconfig, "controller-manager", p.controllerManager),
			"--root-ca-file="+dir.Path("pki", "ca.crt"),
			"--service-account-private-key-file="+dir.Path("pki", "service-account.key"),
			"--cluster-signing-cert-file="+dir.Path("pki", "ca.crt"),
			"--cluster-signing-key-file="+dir.Path("pki", "ca.key"),
			"--allocate-node-cidrs=false",
			"--kube-api-qps=1000", "--kube-api-burst=2000",
			"--concurrent-deployment-syncs=20",
			"--concurrent-replicaset-syncs=20",
			"--concurrent-statefulset-syncs=20",
			"--concurrent-gc-syncs=50",
			"--concurrent-namespace-syncs=20",
			// How soon the taint of a node that was not ready goes once it is: by default within five seconds.
			"--node-monitor-period=1s",
			// Three missed heartbeats of the simulated kubelets.
			"--node-monitor-grace-period=5m",
			"--node-eviction-rate=10",
			"--profiling=false",
		),
	}
}

func schedulerPart(dir labdir.Dir, p ports) part {
	kubeconfig := dir.Path("config", "scheduler.kubeconfig")
	return part{
		name: "kube-scheduler", port: p.scheduler, scheme: "https", health: "/readyz",
		args: append(clientArgs(dir, kubeconfig, "scheduler", p.scheduler),
			"--kube-api-qps=1000", "--kube-api-burst=2000",
			"--profiling=false",
		),
	}
}

// clientArgs are the flags that the controller manager and the scheduler share.
func clientArgs(dir labdir.Dir, kubeconfig, certificate string, port int) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		// Their own clients are told here whom to trust: the cluster's word on
		// it does not exist yet when they start.
		"--authentication-skip-lookup=true",
		"--client-ca-file=" + dir.Path("pki", "ca.crt"),
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + dir.Path("pki", certificate+".crt"),
		"--tls-private-key-file=" + dir.Path("pki", certificate+".key"),
		"--leader-elect=false",
	}
}

func kwokPart(dir labdir.Dir, p ports) part {
	return part{
		name: "kwok", port: p.kwok, scheme: "http", health: "/healthz",
		args: []string{
			"--kubeconfig=" + dir.Path("config", "kwok.kubeconfig"),
			"--listen=" + hostPort(p.kwok),
		},
	}
}
