package cluster

// InterchangeKey are pods between which neither kube-scheduler nor a placement sees a difference. A pod with volumes
// has none.
type InterchangeKey struct {
	class     *PodClass
	namespace string
	labels    *Label // of pods with equal labels, who share them
	count     int
	uid       string
}

// InterchangeKeyOf says with which pods the pod is interchangeable.
func InterchangeKeyOf(p *Pod) InterchangeKey {
	t := InterchangeKey{class: p.Class, namespace: p.Namespace, count: len(p.Labels)}
	if t.count > 0 {
		t.labels = &p.Labels[0]
	}
	if p.HasVolumes() {
		t.uid = p.UID
	}
	return t
}
