package controlplane

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tenon-sh/tenon/lab/internal/labdir"
	"github.com/tenon-sh/tenon/lab/internal/pki"
)

// serviceAddress is the first address of the service range: the address of the
// service "kubernetes" inside the cluster.
const (
	serviceRange   = "10.96.0.0/12"
	serviceAddress = "10.96.0.1"
)

// writeCredentials puts all certificates, keys and kubeconfigs into the lab's
// directory. Authorities and the service account key are made once, so that
// tokens and certificates of the last run hold; the rest is made for this run.
func writeCredentials(dir labdir.Dir, server string) error {
	authority, err := keptAuthority(dir, "ca", "tenon-lab")
	if err != nil {
		return err
	}
	frontProxy, err := keptAuthority(dir, "front-proxy-ca", "tenon-lab-front-proxy")
	if err != nil {
		return err
	}
	if err := keepSigningKey(dir); err != nil {
		return err
	}
	local := []string{"127.0.0.1", "localhost"}
	inCluster := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local", serviceAddress}
	for _, leaf := range []struct {
		file string
		by   *pki.Authority
		pki.Leaf
	}{
		{"etcd", authority, pki.Leaf{CommonName: "etcd", Hosts: local}},
		{"etcd-client", authority, pki.Leaf{CommonName: "kube-apiserver-etcd-client"}},
		{"supervisor", authority, pki.Leaf{CommonName: "tenon-lab-supervisor", Groups: []string{"system:masters"}}},
		{"apiserver", authority, pki.Leaf{CommonName: "kube-apiserver", Hosts: append(inCluster, local...)}},
		// Who shows this certificate to a node's log server is the API server.
		{"apiserver-kubelet-client", authority, pki.Leaf{CommonName: "kube-apiserver-kubelet-client"}},
		{"controller-manager", authority, pki.Leaf{CommonName: "kube-controller-manager", Hosts: local}},
		{"scheduler", authority, pki.Leaf{CommonName: "kube-scheduler", Hosts: local}},
		{"front-proxy-client", frontProxy, pki.Leaf{CommonName: "front-proxy-client"}},
	} {
		pair, err := leaf.by.Issue(leaf.Leaf)
		if err != nil {
			return err
		}
		if err := writePair(dir, leaf.file, pair); err != nil {
			return err
		}
	}
	return writeKubeconfigs(dir, server, authority)
}

// writeKubeconfigs gives every part the group that RBAC never refuses, so that
// they can start before the API server has made its roles.
func writeKubeconfigs(dir labdir.Dir, server string, authority *pki.Authority) error {
	for _, user := range []struct {
		path  []string
		name  string
		group []string
	}{
		{[]string{"kubeconfig"}, "lab-admin", []string{"system:masters"}},
		{[]string{"config", "controller-manager.kubeconfig"}, "system:kube-controller-manager",
			[]string{"system:masters"}},
		{[]string{"config", "scheduler.kubeconfig"}, "system:kube-scheduler", []string{"system:masters"}},
		{[]string{"config", "kwok.kubeconfig"}, "kwok", []string{"system:masters"}},
	} {
		pair, err := authority.Issue(pki.Leaf{CommonName: user.name, Groups: user.group})
		if err != nil {
			return err
		}
		content := pki.Kubeconfig(server, authority.Pair().Cert, user.name, pair)
		if err := dir.Write(content, user.path...); err != nil {
			return err
		}
	}
	return nil
}

// keptAuthority returns the authority of an earlier run, or a new one.
func keptAuthority(dir labdir.Dir, file, name string) (*pki.Authority, error) {
	cert, certErr := os.ReadFile(dir.Path("pki", file+".crt"))
	key, keyErr := os.ReadFile(dir.Path("pki", file+".key"))
	if certErr == nil && keyErr == nil {
		authority, err := pki.ParseAuthority(pki.Pair{Cert: cert, Key: key})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir.Path("pki", file+".crt"), err)
		}
		if !authority.ExpiresBefore(time.Now().AddDate(1, 0, 0)) {
			return authority, nil
		}
	}
	if err := firstOther(certErr, keyErr); err != nil {
		return nil, fmt.Errorf("read authority %s: %w", file, err)
	}
	authority, err := pki.NewAuthority(name)
	if err != nil {
		return nil, err
	}
	return authority, writePair(dir, file, authority.Pair())
}

// firstOther returns the first error that is not about a missing file.
func firstOther(errs ...error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func keepSigningKey(dir labdir.Dir) error {
	_, err := os.Stat(dir.Path("pki", "service-account.pub"))
	if err == nil {
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the service account key: %w", err)
	}
	private, public, err := pki.NewSigningKey()
	if err != nil {
		return err
	}
	// The public half comes last: its presence means that both are there.
	if err := dir.Write(private, "pki", "service-account.key"); err != nil {
		return err
	}
	return dir.Write(public, "pki", "service-account.pub")
}

func writePair(dir labdir.Dir, name string, pair pki.Pair) error {
	if err := dir.Write(pair.Key, "pki", name+".key"); err != nil {
		return err
	}
	return dir.Write(pair.Cert, "pki", name+".crt")
}
