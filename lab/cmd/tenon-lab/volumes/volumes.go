// Package volumes plays the volume drivers of a lab: it makes the volumes that
// claims ask for, marks them attached and detached, deletes them, and says of
// every node what it can attach. The rules are those of internal/volumes. It
// touches the API server that it is given.
package volumes

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	rules "github.com/tenon-sh/tenon/lab/internal/volumes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	workers = 4
	// The pauses between tries when the API server answers with errors.
	firstPause, longestPause = 20 * time.Millisecond, 5 * time.Second
)

// kind says which look an object needs.
type kind string

const (
	claims      kind = "claim"
	volumes     kind = "volume"
	attachments kind = "attachment"
	nodes       kind = "node"
)

// key is an object to look at.
type key struct {
	kind            kind
	namespace, name string
}

// player acts for the drivers.
type player struct {
	api         kubernetes.Interface
	queue       workqueue.TypedRateLimitingInterface[key]
	claims      corelisters.PersistentVolumeClaimLister
	volumes     corelisters.PersistentVolumeLister
	nodes       corelisters.NodeLister
	classes     storagelisters.StorageClassLister
	attachments storagelisters.VolumeAttachmentLister
	drivers     storagelisters.CSINodeLister
}

// Run plays the drivers until ctx ends. It makes the storage classes first.
func Run(ctx context.Context, api kubernetes.Interface) error {
	if err := install(ctx, api); err != nil {
		return err
	}
	pause := workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstPause, longestPause)
	p := &player{api: api, queue: workqueue.NewTypedRateLimitingQueue(pause)}
	factory := informers.NewSharedInformerFactoryWithOptions(api, 0, informers.WithTransform(slim))
	if err := p.listen(factory); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for of, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("watch %s: %w", of, context.Cause(ctx))
		}
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for p.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	p.queue.ShutDown()
	group.Wait()
	factory.Shutdown()
	return nil
}

// install makes what belongs to every lab, unless it is there.
func install(ctx context.Context, api kubernetes.Interface) error {
	for _, class := range rules.Classes() {
		_, err := api.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make storage class %s: %w", class.Name, err)
		}
	}
	for _, driver := range rules.Drivers() {
		_, err := api.StorageV1().CSIDrivers().Create(ctx, driver, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make CSIDriver %s: %w", driver.Name, err)
		}
	}
	return nil
}

// listen has every change of an object lead to a look at whatever it may set free.
func (p *player) listen(factory informers.SharedInformerFactory) error {
	core, storage := factory.Core().V1(), factory.Storage().V1()
	p.claims, p.volumes, p.nodes = core.PersistentVolumeClaims().Lister(), core.PersistentVolumes().Lister(),
		core.Nodes().Lister()
	p.classes, p.attachments, p.drivers = storage.StorageClasses().Lister(), storage.VolumeAttachments().Lister(),
		storage.CSINodes().Lister()
	for _, l := range []struct {
		informer cache.SharedIndexInformer
		heard    func(object metav1.Object)
	}{
		{core.PersistentVolumeClaims().Informer(), func(o metav1.Object) {
			p.queue.Add(key{claims, o.GetNamespace(), o.GetName()})
		}},
		{core.PersistentVolumes().Informer(), func(o metav1.Object) { p.queue.Add(key{volumes, "", o.GetName()}) }},
		{storage.StorageClasses().Informer(), func(metav1.Object) { p.lookAtClaims() }},
		{storage.VolumeAttachments().Informer(), func(o metav1.Object) {
			p.queue.Add(key{attachments, "", o.GetName()})
			p.lookAtVolumes()
		}},
		{storage.CSINodes().Informer(), func(o metav1.Object) { p.queue.Add(key{nodes, "", o.GetName()}) }},
	} {
		if _, err := l.informer.AddEventHandler(handler(l.heard)); err != nil {
			return fmt.Errorf("listen to changes: %w", err)
		}
	}
	// Heartbeats change nothing for the drivers: nodes count when they come and go.
	come := func(object any) {
		p.queue.Add(key{nodes, "", nameOf(object)})
		p.lookAtClaims()
		p.lookAtAttachments()
	}
	_, err := core.Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: come, DeleteFunc: come})
	if err != nil {
		return fmt.Errorf("listen to nodes: %w", err)
	}
	return nil
}

// slim drops from what is kept in memory who wrote which field.
func slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

func handler(heard func(metav1.Object)) cache.ResourceEventHandler {
	tell := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(metav1.Object); ok {
			heard(o)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }, DeleteFunc: tell}
}

func nameOf(object any) string {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return ""
	}
	return name
}

// next looks at the next object. It says false when there will be no more.
func (p *player) next(ctx context.Context) bool {
	k, over := p.queue.Get()
	if over {
		return false
	}
	defer p.queue.Done(k)
	err := p.look(ctx, k)
	if err == nil || apierrors.IsNotFound(err) {
		p.queue.Forget(k) // what is not there any more asks for nothing
		return true
	}
	if !apierrors.IsConflict(err) && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "%s volumes: %s %s: %v; trying again\n", time.Now().Format(time.RFC3339), k.kind,
			k.name, err)
	}
	p.queue.AddRateLimited(k)
	return true
}

func (p *player) look(ctx context.Context, k key) error {
	switch k.kind {
	case claims:
		return p.provision(ctx, k.namespace, k.name)
	case volumes:
		return p.release(ctx, k.name)
	case attachments:
		return p.attach(ctx, k.name)
	case nodes:
		return p.describe(ctx, k.name)
	}
	return fmt.Errorf("there is no kind %q", k.kind)
}

// Start plays the drivers in the background and starts over after an error, until ctx ends.
func Start(ctx context.Context, api kubernetes.Interface) {
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := Run(ctx, api); err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "%s volumes: %v; starting over\n", time.Now().Format(time.RFC3339), err)
		}
	}, time.Second)
}
