package cluster

import (
	"crypto/sha256"
	"encoding/hex"
)

// mostUID is how long a UID may be that is kept as it is. Those that the API server gives have 36 characters.
const mostUID = 64

// SafeUID is the UID if it looks like one, else a hash of it. Whoever creates a pod writes the UID of its owner, and
// the API server neither limits its length nor its characters.
func SafeUID(uid string) string {
	if looksLikeUID(uid) {
		return uid
	}
	sum := sha256.Sum256([]byte(uid))
	return "hash-" + hex.EncodeToString(sum[:16])
}

func looksLikeUID(text string) bool {
	if len(text) == 0 || len(text) > mostUID {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-') {
			return false
		}
	}
	return true
}

// OwnerKey names an owner of pods by its namespace and UID. A pod can name any UID as its owner's, so without the
// namespace it could pass for a pod of somebody else's workload.
func OwnerKey(namespace, uid string) string {
	if namespace == "" {
		return SafeUID(uid)
	}
	return namespace + "/" + SafeUID(uid)
}

// Owns reports whether the pod is one of the DaemonSet's.
func (d *Daemon) Owns(p *Pod) bool {
	if p.Namespace != d.Namespace {
		return false
	}
	if d.Namespace == "" {
		return p.Owner == d.UID
	}
	n := len(d.Namespace)
	return len(p.Owner) == n+1+len(d.UID) && p.Owner[n+1:] == d.UID && p.Owner[:n] == d.Namespace
}

// Workload is the key of the workload that a pod belongs to: the controller of its controller where that is known (a
// Deployment, a CronJob), else its controller, else the pod itself, whose key is its UID.
func (s *Snapshot) Workload(p *Pod) string {
	if p.Owner == "" {
		return p.UID
	}
	if o, known := s.Owners[p.Owner]; known && o.Workload != "" {
		return o.Workload
	}
	return p.Owner
}
