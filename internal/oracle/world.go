package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/validate"
)

// world is a cluster as the API server would show it, and what its cloud sells.
type world struct {
	Namespaces     []*corev1.Namespace             `json:"namespaces"`
	Nodes          []*corev1.Node                  `json:"nodes"`
	CSINodes       []*storagev1.CSINode            `json:"csiNodes"`
	Pods           []*corev1.Pod                   `json:"pods"`
	Volumes        []*corev1.PersistentVolume      `json:"volumes"`
	VolumeClaims   []*corev1.PersistentVolumeClaim `json:"volumeClaims"`
	StorageClasses []*storagev1.StorageClass       `json:"storageClasses"`
	DaemonSets     []*appsv1.DaemonSet             `json:"daemonSets"`
	Pools          []*v1.NodePool                  `json:"pools"`
	NodeClaims     []*v1.NodeClaim                 `json:"nodeClaims"`
	Types          []*cloudprovider.InstanceType   `json:"types"`
}

// InstanceTypes sells every pool the same.
func (w *world) InstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return w.Types, nil
}

const catalogPatience = 10 * time.Second

// snapshot is what ingest makes of the cluster.
func (w *world) snapshot(ctx context.Context) (*cluster.Snapshot, error) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	kind := cluster.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}
	book := ingest.New(func() time.Time { return now }, validate.Labels{}, []cluster.ClassRef{kind})
	w.tell(book)
	ctx, cancel := context.WithTimeout(ctx, catalogPatience)
	defer cancel()
	go func() { _ = book.KeepCatalogs(ctx, w) }()
	for {
		s := book.Snapshot()
		missing := ""
		for _, p := range s.Pools {
			if len(p.Problems) > 0 {
				return nil, fmt.Errorf("pool %s is not valid: %s: %s", p.Name, p.Problems[0].Field, p.Problems[0].Text)
			}
			if p.Catalog == nil {
				missing = p.Name
			}
		}
		if missing == "" {
			return s, nil
		}
		select {
		case <-book.Changed():
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the catalog of pool %s: %w", missing, ctx.Err())
		}
	}
}

// tell feeds the book as the watches would.
func (w *world) tell(book *ingest.Book) {
	for _, p := range w.Pools {
		ref := p.Spec.Template.Spec.NodeClassRef
		book.SetNodeClass(cluster.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name},
			cluster.NodeClassState{Ready: true})
		book.SetPool(p)
	}
	for _, n := range w.Namespaces {
		book.SetNamespace(n)
	}
	for _, c := range w.StorageClasses {
		book.SetStorageClass(c)
	}
	for _, v := range w.Volumes {
		book.SetVolume(v)
	}
	for _, c := range w.VolumeClaims {
		book.SetVolumeClaim(c)
	}
	for _, n := range w.CSINodes {
		book.SetCSINode(n)
	}
	for _, d := range w.DaemonSets {
		book.SetDaemon(d)
	}
	for _, c := range w.NodeClaims {
		book.SetClaim(c)
	}
	for _, n := range w.Nodes {
		book.SetNode(n)
	}
	for _, p := range w.Pods {
		book.SetPod(p)
	}
}
