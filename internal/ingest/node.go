package ingest

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/machines"
)

// SetNode takes in a node as the API server shows it.
func (b *Book) SetNode(node *corev1.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := machines.ReadNode(node, b.isOurs(node.Labels), b.healthConditions)
	n.Capacity, n.Allocatable = b.specs.Dims.Measure(node.Status.Capacity), b.allocatableOf(n, node.Status.Allocatable)
	old := b.nodes[n.Name]
	machines.ReadAuthors(n, old, node)
	if old != nil { // by our own clock: a machine's may be wrong
		n.ReadySince = old.Node.ReadySince
		if old.Node.Ready != n.Ready {
			n.ReadySince = b.now()
		}
	} else if n.ReadySince.After(b.now()) {
		n.ReadySince = b.now()
	}
	if machines.Opens(old, n) {
		b.noteActivity(true)
	}
	b.specs.Dims.Offer(old.Lists(), []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable})
	b.nodes[n.Name] = &machines.NodeEntry{Node: n, Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable,
		MostAllocatable: machines.MostOf(old, n.UID, node.Status.Allocatable), FieldAuthors: node.ManagedFields}
	settled := b.settleWrites(command.KindNode, n.Name)
	what, changed := machines.NodeChange(old, n)
	if changed {
		b.indexNode(old, n)
		what |= b.rereadNominees(n.Name) | b.observeCapacity(n)
		if machines.Grew(old, b.nodes[n.Name]) {
			what |= b.reobserveCapacity(n)
		}
	}
	if changed || settled {
		b.noteAndWake(what)
	}
	if old != nil && old.Node.Ready && !n.Ready && n.Ours {
		b.requestInventory() // its machine may be gone
	}
}

// WatchHealth names the conditions of nodes that somebody will ask for. It comes before anything is taken in.
func (b *Book) WatchHealth(types ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range types {
		b.healthConditions[t] = true
	}
}

// indexNode keeps the index of nodes by the machine that they run on. The lock is held.
func (b *machineState) indexNode(old *machines.NodeEntry, n *cluster.Node) {
	if old != nil && old.Node.ProviderID != n.ProviderID && b.nodeBy[old.Node.ProviderID] == n.Name {
		delete(b.nodeBy, old.Node.ProviderID)
	}
	if n.ProviderID != "" {
		b.nodeBy[n.ProviderID] = n.Name
	}
}

// DeleteNode takes in that a node is gone.
func (b *Book) DeleteNode(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.nodes[name]; e != nil {
		if b.nodeBy[e.Node.ProviderID] == name {
			delete(b.nodeBy, e.Node.ProviderID)
		}
		if e.Node.Ours {
			b.requestInventory() // did its machine go, too?
		}
	}
	b.specs.Dims.Offer(b.nodes[name].Lists(), nil)
	delete(b.nodes, name)
	delete(b.podEvents, name)
	b.settleWrites(command.KindNode, name)
	b.noteAndWake(change.Room | b.rereadNominees(name))
}

// isOurs reports whether the labels of a node name a NodeClass of ours.
func (b *poolState) isOurs(labels map[string]string) bool {
	for kind := range b.nodeClassKinds {
		if _, ok := labels[v1.NodeClassLabelKey(kind.Group, kind.Kind)]; ok {
			return true
		}
	}
	return false
}
