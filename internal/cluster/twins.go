package cluster

// Twins are pods between which neither kube-scheduler nor a placement sees a difference. A pod with volumes has none.
type Twins struct {
	class     *PodClass
	namespace string
	labels    *Label // of pods with equal labels, who share them
	count     int
	uid       string
}

// TwinsOf says whose twin the pod is.
func TwinsOf(p *Pod) Twins {
	t := Twins{class: p.Class, namespace: p.Namespace, count: len(p.Labels)}
	if t.count > 0 {
		t.labels = &p.Labels[0]
	}
	if len(p.Volumes)+len(p.Exclusive)+len(p.Unbound) > 0 {
		t.uid = p.UID
	}
	return t
}

// Alone reports whether there can be no other.
func (t Twins) Alone() bool { return t.uid != "" }
