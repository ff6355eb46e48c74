// Package stages holds the behaviour of the lab's simulated kubelets: kwok
// stages as text, and the functions that their templates call beyond kwok's
// own. It is apart from the code that runs them, which links kwok and client-go,
// so that looking after the stages stays quick. It touches nothing.
package stages

import (
	_ "embed"
	"net"
)

//go:embed stages.yaml
var document string

// YAML returns the stages as a stream of YAML documents.
func YAML() string { return document }

// Functions returns the template functions of the stages.
func Functions(kubeletVersion string) map[string]any {
	return map[string]any{
		"KubeletVersion": func() string { return kubeletVersion },
		"NodeAddress":    nodeAddress,
	}
}

// nodeAddress derives an address in 10.0.0.0/10 from a node's uid: stable, and
// distinct enough for a cluster that routes nothing.
func nodeAddress(uid string) string {
	var sum uint32 = 2166136261
	for i := range len(uid) {
		sum = (sum ^ uint32(uid[i])) * 16777619
	}
	return net.IPv4(10, byte(sum>>16)&0x3f, byte(sum>>8), byte(sum)).String()
}
