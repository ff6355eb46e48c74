package pools

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/validate"
)

// Entry keeps beside the pool what depends on the time of the snapshot.
type Entry struct {
	Pool    *cluster.Pool
	Object  *v1.NodePool
	Version uint64
	windows []window // by budget
}

// Read reads a NodePool but for its status, and what is to be told about it, if anything. What old has found out about
// the times at which budgets hold is kept if they are the same; there may be no old one. limits counts the pool's
// limits.
func Read(pool *v1.NodePool, old *Entry, labels validate.Labels,
	limits func(corev1.ResourceList) cluster.Limits) (*Entry, *cluster.Note) {
	e := &Entry{Object: pool, Version: decode.ParseVersion(pool.ResourceVersion), Pool: readSpec(pool, labels, limits)}
	note := readOverrides(e.Pool, pool)
	e.readBudgets(old)
	return e, note
}

// ReadBroken reads a NodePool of which parts can't be read.
func ReadBroken(pool *v1.NodePool, status cluster.PoolStatus, lost []decode.Unreadable) *Entry {
	p := &cluster.Pool{
		Name: pool.Name, UID: string(pool.UID), Generation: pool.Generation, Deleting: pool.DeletionTimestamp != nil,
		Static: pool.Spec.Replicas != nil, ConsolidateAfter: cluster.NillableDuration{Never: true},
		Budgets: []cluster.Budget{{Broken: true}},
		Status:  status,
	}
	if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil {
		p.Template.NodeClass = cluster.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
	}
	for _, l := range lost {
		p.Problems = append(p.Problems, cluster.Problem{Field: l.Path, Text: fmt.Sprintf("it can't be read: %v; "+
			"correct or remove it", l.Err)})
	}
	return &Entry{Pool: p, Object: pool, Version: decode.ParseVersion(pool.ResourceVersion), windows: make([]window, 1)}
}

// HasSameSpec reports whether a NodePool differs in nothing but its status from what was read. A limit that could not
// be counted is read again.
func (e *Entry) HasSameSpec(pool *v1.NodePool) bool {
	old := e.Object
	return old != pool && old.UID == pool.UID && old.Generation == pool.Generation &&
		(old.DeletionTimestamp != nil) == (pool.DeletionTimestamp != nil) &&
		e.Pool.Limits.Broken == "" && maps.Equal(old.Annotations, pool.Annotations) && reflect.DeepEqual(&old.Spec,
		&pool.Spec)
}

// WithStatus is the entry with another status. Most changes are of that, which we write ourselves: the rest is not read
// again then.
func (e *Entry) WithStatus(pool *v1.NodePool, status cluster.PoolStatus) *Entry {
	p := *e.Pool
	p.Status = status
	return &Entry{Pool: &p, Object: pool, Version: decode.ParseVersion(pool.ResourceVersion), windows: e.windows}
}

// readSpec reads a NodePool's spec, but for its budgets.
func readSpec(pool *v1.NodePool, labels validate.Labels,
	limits func(corev1.ResourceList) cluster.Limits) *cluster.Pool {
	spec := &pool.Spec.Template.Spec
	p := &cluster.Pool{
		Name: pool.Name, UID: string(pool.UID), Generation: pool.Generation, Deleting: pool.DeletionTimestamp != nil,
		Static: pool.Spec.Replicas != nil, Policy: cluster.Policy(pool.Spec.Disruption.ConsolidationPolicy),
		ConsolidateAfter: decode.WaitOf(pool.Spec.Disruption.ConsolidateAfter),
		Limits:           limits(pool.Spec.Limits),
		Template: cluster.Template{
			Labels:       cluster.LabelsOf(pool.Spec.Template.Labels),
			Annotations:  cluster.LabelsOf(pool.Spec.Template.Annotations),
			Requirements: decode.RequirementsOf(spec.Requirements),
			Taints:       decode.TaintsOf(spec.Taints), StartupTaints: decode.TaintsOf(spec.StartupTaints),
			ExpireAfter: spec.ExpireAfter.String(),
		},
	}
	if pool.Spec.Replicas != nil {
		p.Replicas = *pool.Spec.Replicas
	}
	if pool.Spec.Weight != nil {
		p.Weight = *pool.Spec.Weight
	}
	if ref := spec.NodeClassRef; ref != nil {
		p.Template.NodeClass = cluster.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
		p.Template.Labels = p.Template.Labels.With(v1.NodeClassLabelKey(ref.Group, ref.Kind), ref.Name)
	}
	if grace := spec.TerminationGracePeriod; grace != nil {
		p.Template.HasTerminationGrace, p.Template.TerminationGrace = true, grace.Duration
	}
	for _, problem := range validate.NodePool(pool, labels) {
		p.Problems = append(p.Problems, decode.ProblemOf(problem))
	}
	for _, doubt := range validate.Doubts(pool, labels) {
		p.Warnings = append(p.Warnings, decode.ProblemOf(doubt))
	}
	for _, timeout := range timeouts(p) {
		if problem, bad := timeout.read(pool.Annotations); bad {
			p.Problems = append(p.Problems, problem)
		}
	}
	readTemplateHash(p, pool)
	return p
}

// readBudgets reads the pool's budgets. What old has found out about the times at which they hold is kept if they are
// the same.
func (e *Entry) readBudgets(old *Entry) {
	budgets := e.Object.Spec.Disruption.Budgets
	if old != nil && reflect.DeepEqual(old.Object.Spec.Disruption.Budgets, budgets) {
		e.Pool.Budgets, e.windows = old.Pool.Budgets, old.windows
		return
	}
	for i := range budgets {
		budget, w := budgetOf(&budgets[i])
		e.Pool.Budgets, e.windows = append(e.Pool.Budgets, budget), append(e.windows, w)
	}
}

// BudgetsAt are the budgets with which of them hold at the time, and until when.
func (e *Entry) BudgetsAt(now time.Time) []cluster.Budget {
	out := slices.Clone(e.Pool.Budgets)
	for i := range out {
		out[i].Active, out[i].ChangesAt = e.windows[i].stateAt(now)
	}
	return out
}

// PlacesOtherwise reports whether pods go elsewhere with the other entry in this one's place.
func (e *Entry) PlacesOtherwise(other *Entry) bool {
	return !reflect.DeepEqual(placementPart(e.Pool), placementPart(other.Pool))
}

// DisruptsOtherwise reports whether nodes go otherwise with the other entry in this one's place.
func (e *Entry) DisruptsOtherwise(other *Entry) bool {
	return !reflect.DeepEqual(e.Object.Spec.Disruption, other.Object.Spec.Disruption) ||
		!reflect.DeepEqual(e.Pool.Overrides, other.Pool.Overrides)
}

// placementPart is the part of a pool that decides where pods go.
func placementPart(p *cluster.Pool) cluster.Pool {
	out := *p
	out.Status, out.Budgets, out.Policy, out.ConsolidateAfter = cluster.PoolStatus{}, nil, "",
		cluster.NillableDuration{}
	out.Replicas, out.Timeouts = 0, cluster.Timeouts{}
	out.WrittenHash, out.Overrides = cluster.TemplateHash{}, cluster.DisruptionOverrides{}
	return out
}
