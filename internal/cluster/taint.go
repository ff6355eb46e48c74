package cluster

// Effect says what a taint does to pods that don't tolerate it.
type Effect string

// The effects of Kubernetes.
const (
	NoSchedule       Effect = "NoSchedule"
	PreferNoSchedule Effect = "PreferNoSchedule"
	NoExecute        Effect = "NoExecute"
)

// Taint keeps pods off a node.
type Taint struct {
	Key, Value string
	Effect     Effect
}

// String writes the taint as kubectl does.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// Toleration lets a pod onto nodes with certain taints.
type Toleration struct {
	Key, Value string
	// Exists matches any value; with an empty key, any taint.
	Exists bool
	// Effect it is limited to; empty for all.
	Effect Effect
}

// Tolerates reports whether the toleration covers the taint.
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key == "" {
		return t.Exists
	}
	return t.Key == taint.Key && (t.Exists || t.Value == taint.Value)
}

// Untolerated returns the first taint that keeps the pod off. A PreferNoSchedule taint keeps nobody off.
func Untolerated(tolerations []Toleration, taints []Taint) (taint Taint, found bool) {
	for _, taint := range taints {
		if taint.Effect == PreferNoSchedule || tolerated(tolerations, taint) {
			continue
		}
		return taint, true
	}
	return Taint{}, false
}

func tolerated(tolerations []Toleration, taint Taint) bool {
	for _, t := range tolerations {
		if t.Tolerates(taint) {
			return true
		}
	}
	return false
}
