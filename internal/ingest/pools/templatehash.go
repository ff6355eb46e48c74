package pools

import (
	"fmt"
	"strconv"
	"time"

	"github.com/mitchellh/hashstructure/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// templateHashOf is the hash of a pool's template as it is now.
//
// The value is part of the contract: a cluster that was run by Karpenter carries hashes that Karpenter computed, and if
// ours differed every node would be replaced on the day that Tenon takes over. So it is computed in the same way
// (version v3): by the same library with the same options, from types whose names, fields and order of fields are the
// ones that go into it. Requirements do not: they are compared with each node itself.
func templateHashOf(pool *v1.NodePool) (cluster.TemplateHash, error) {
	type ObjectMeta struct{ Labels, Annotations map[string]string }
	type NodeClassReference struct{ Kind, Name, Group string }
	type NillableDuration struct{ *time.Duration } // its text does not count
	type NodeClaimTemplateSpec struct {
		Taints, StartupTaints  []corev1.Taint
		NodeClassRef           *NodeClassReference
		TerminationGracePeriod *metav1.Duration
		ExpireAfter            NillableDuration
	}
	type NodeClaimTemplate struct {
		ObjectMeta
		Spec NodeClaimTemplateSpec
	}
	t := &pool.Spec.Template
	of := NodeClaimTemplate{
		ObjectMeta: ObjectMeta{Labels: t.Labels, Annotations: t.Annotations},
		Spec: NodeClaimTemplateSpec{
			Taints: coreTaints(t.Spec.Taints), StartupTaints: coreTaints(t.Spec.StartupTaints),
			TerminationGracePeriod: t.Spec.TerminationGracePeriod,
			ExpireAfter:            NillableDuration{t.Spec.ExpireAfter.Duration},
		},
	}
	if ref := t.Spec.NodeClassRef; ref != nil {
		of.Spec.NodeClassRef = &NodeClassReference{Kind: ref.Kind, Name: ref.Name, Group: ref.Group}
	}
	hash, err := hashstructure.Hash(of, hashstructure.FormatV2, &hashstructure.HashOptions{SlicesAsSets: true,
		IgnoreZeroValue: true, ZeroNil: true})
	if err != nil {
		return cluster.TemplateHash{}, fmt.Errorf("hashing the template of NodePool %s: %w", pool.Name, err)
	}
	return cluster.TemplateHash{Hash: strconv.FormatUint(hash, 10), Version: v1.NodePoolHashVersion}, nil
}

// coreTaints converts taints; an empty list stays one, since it hashes differently from none.
func coreTaints(list []v1.Taint) []corev1.Taint {
	if list == nil {
		return nil
	}
	return append([]corev1.Taint{}, v1.CoreTaints(list)...)
}
