package pki

import (
	"encoding/base64"
	"fmt"
)

// Kubeconfig writes a kubeconfig with one cluster, one user and the
// certificates inside, so that the file can be copied anywhere on the machine.
func Kubeconfig(server string, authority []byte, user string, pair Pair) []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster:
    server: %q
    certificate-authority-data: %s
users:
- name: %q
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: lab
  context:
    cluster: lab
    user: %q
current-context: lab
`, server, encode(authority), user, encode(pair.Cert), encode(pair.Key), user)
}
