package webhook

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watched is an API server of which only the watch of a definition is needed.
type watched struct {
	client.WithWatch
	events chan watch.Event
}

func (w *watched) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return watch.NewProxyWatcher(w.events), nil
}

// refusing is an API server that does not let anybody watch.
type refusing struct{ client.WithWatch }

func (refusing) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	resource := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	return nil, apierrors.NewForbidden(resource, "", errors.New("no role allows it"))
}

// TestRefusedWatch: that a right is missing is logged once, although nothing fails without it: changes are answered
// later.
func TestRefusedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
		w := &Webhook{client: refusing{}, log: log, changed: make(chan struct{}, 1), applied: make(chan struct{}, 1)}
		ctx, stop := context.WithTimeout(t.Context(), 10*retries) // of the bubble's time
		defer stop()
		w.watch(ctx, "nodepools.karpenter.sh")
		if len(lines) != 1 || !strings.Contains(lines[0], "forbidden") || !strings.Contains(lines[0],
			"nodepools.karpenter.sh") {
			t.Errorf("the log is %q", lines)
		}
	})
}

func rang(bell <-chan struct{}) bool {
	select {
	case <-bell:
		return true
	default:
		return false
	}
}

// TestWhoIsToldOfAChange: every event has the definitions looked at, but only one that may have brought older objects
// has them stored anew, so that others don't cut short the pause after a failure.
func TestWhoIsToldOfAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		server := &watched{events: make(chan watch.Event)}
		w := &Webhook{client: server, changed: make(chan struct{}, 1), applied: make(chan struct{}, 1)}
		definition := poolsCRD("v1", "v1beta1")
		definition.UID, definition.Generation, definition.Status.StoredVersions = "a", 1, []string{"v1"}
		go w.watch(ctx, definition.Name)
		for _, tc := range []struct {
			name   string
			kind   watch.EventType
			change func(*apiextensionsv1.CustomResourceDefinition)
			want   bool
		}{
			{"the first event", watch.Added, func(*apiextensionsv1.CustomResourceDefinition) {}, true},
			{"an annotation", watch.Modified, func(d *apiextensionsv1.CustomResourceDefinition) {
				d.Annotations = map[string]string{"a": "b"}
			}, false},
			{"the watch begins again", watch.Added, func(*apiextensionsv1.CustomResourceDefinition) {
				ended := server.events
				server.events = make(chan watch.Event)
				close(ended)
			}, false},
			{"another specification", watch.Modified, func(d *apiextensionsv1.CustomResourceDefinition) {
				d.Generation = 2
			}, true},
			{"older objects are restored", watch.Modified, func(d *apiextensionsv1.CustomResourceDefinition) {
				d.Status.StoredVersions = []string{"v1beta1", "v1"}
			}, true},
			{"deleted and made again", watch.Added, func(d *apiextensionsv1.CustomResourceDefinition) {
				d.UID = "b"
			}, true},
		} {
			definition = definition.DeepCopy()
			tc.change(definition)
			server.events <- watch.Event{Type: tc.kind, Object: definition}
			synctest.Wait()
			if !rang(w.changed) {
				t.Errorf("%s: nobody looks", tc.name)
			}
			if got := rang(w.applied); got != tc.want {
				t.Errorf("%s: objects are stored anew: %v", tc.name, got)
			}
		}
		stop()
		close(server.events)
	})
}
