package outcome

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// amounts of resources, in thousandths.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	out := make(amounts, len(list))
	for name, q := range list {
		out[name] = q.MilliValue()
	}
	return out
}

// requestsOf is what a pod of a workload takes: its containers' requests and its slot.
func requestsOf(p *corev1.Pod) amounts {
	out := amounts{corev1.ResourcePods: 1000}
	for i := range p.Spec.Containers {
		for name, q := range p.Spec.Containers[i].Resources.Requests {
			out[name] += q.MilliValue()
		}
	}
	return out
}

func (a amounts) add(b amounts) {
	for name, n := range b {
		a[name] += n
	}
}

// beyond names a resource of which there is more than the room has.
func (a amounts) beyond(room amounts) corev1.ResourceName {
	var short []string
	for name, n := range a {
		if n > room[name] {
			short = append(short, string(name))
		}
	}
	slices.Sort(short)
	return corev1.ResourceName(strings.Join(short, ", "))
}

// take finds pods by UID and counts that they were given a place.
func (c *audit) take(uids []string) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(uids))
	for _, uid := range uids {
		p := c.pods[uid]
		if p == nil {
			c.problem("%s is given a place but is no pending pod", uid)
			continue
		}
		c.seen[uid]++
		c.account.Placed++
		c.account.PlacedMilli += requestsOf(p)[corev1.ResourceCPU]
		out = append(out, p)
	}
	return out
}

// admit checks what the pod asks of its node alone, and seats it.
func (c *audit) admit(p *corev1.Pod, at int, taints []v1.Taint) {
	for key, value := range p.Spec.NodeSelector {
		if have := c.places[at].labels[key]; have != value {
			c.problem("%s selects %s=%s; its node has %q", p.Name, key, value, have)
		}
	}
	for i := range taints {
		t := &taints[i]
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(p.Spec.Tolerations, t) {
			c.problem("%s does not tolerate %s of its node", p.Name, t.Key)
		}
	}
	c.sit(p, at)
}

func tolerates(list []corev1.Toleration, t *v1.Taint) bool {
	return slices.ContainsFunc(list, func(have corev1.Toleration) bool {
		return have.Key == t.Key && (have.Operator == corev1.TolerationOpExists || have.Value == t.Value) &&
			(have.Effect == "" || have.Effect == t.Effect)
	})
}

// sit notes where the pod is, for the rules between pods.
func (c *audit) sit(p *corev1.Pod, at int) {
	for key, value := range p.Labels {
		label := key + "=" + value
		c.by[label] = append(c.by[label], guest{pod: p, place: at})
	}
}
