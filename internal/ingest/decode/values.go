package decode

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/validate"
)

// ProblemOf puts a finding into the words of a condition.
func ProblemOf(p validate.Problem) cluster.Problem {
	return cluster.Problem{Field: p.Field, Text: strings.TrimPrefix(p.String(), p.Field+" ")}
}

// RequirementsOf intersects the items of an API list, key by key.
func RequirementsOf(list []v1.NodeSelectorRequirementWithMinValues) require.Set {
	var set require.Set
	for _, r := range list {
		values, ok := require.Make(require.Operator(r.Operator), r.Values)
		if !ok {
			values = require.Values{} // validation has refused it; nothing may slip through
		}
		key := validate.NormalizeKey(r.Key)
		set = set.With(key, values)
		if r.MinValues != nil {
			set = set.WithMin(key, *r.MinValues)
		}
	}
	return set
}

// TaintsOf converts taints.
func TaintsOf(list []v1.Taint) []cluster.Taint {
	var out []cluster.Taint
	for _, t := range list {
		out = append(out, cluster.Taint{Key: t.Key, Value: t.Value, Effect: cluster.Effect(t.Effect)})
	}
	return out
}

// ConditionsOf converts conditions.
func ConditionsOf(list []metav1.Condition) []cluster.Condition {
	var out []cluster.Condition
	for _, c := range list {
		out = append(out, cluster.Condition{
			Type: c.Type, Status: cluster.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			Since: c.LastTransitionTime.Time, Generation: c.ObservedGeneration,
		})
	}
	return out
}

// TimeOf is the time, or the zero time if none is set.
func TimeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// WaitOf converts a duration that may be Never.
func WaitOf(d v1.NillableDuration) cluster.NillableDuration {
	if d.IsNever() {
		return cluster.NillableDuration{Never: true}
	}
	return cluster.NillableDuration{For: *d.Duration}
}

// KeepsNode reports whether the annotations of a node or claim keep it from being disrupted, by today's name or by the
// one from the time of Provisioners.
func KeepsNode(annotations map[string]string) bool {
	return annotations[v1.DoNotDisruptAnnotationKey] == "true" ||
		annotations[v1.DoNotConsolidateAnnotationKey] == "true"
}

// CameAt is when a pod came to its node: when it was bound or, if nobody bound it, when it was created there.
func CameAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// IsReady reports whether a pod is ready.
func IsReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// PhaseOf is the pod's phase as one of a few constants, so that no text of the pod is kept for it.
func PhaseOf(pod *corev1.Pod) string {
	for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed,
		corev1.PodUnknown} {
		if pod.Status.Phase == phase {
			return string(phase)
		}
	}
	return ""
}

// ParseVersion reads a resource version; Kubernetes defines them as rising integers.
func ParseVersion(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
