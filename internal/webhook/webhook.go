package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const (
	// looks is how often certificate and definitions are looked at, besides when a definition changes.
	looks = time.Minute
	// retries is how soon after trouble, or while the definitions name another replica.
	retries = 5 * time.Second
	// startsWithin bounds the first look, which the start of the controller waits for.
	startsWithin = 20 * time.Second
)

// Settings say where a webhook is and whose.
type Settings struct {
	// Config reaches the API server.
	Config *rest.Config
	// Address is where the API server reaches the webhook.
	Address Address
	// Secret keeps the certificate.
	Secret client.ObjectKey
	// Leads says whether this replica leads; nil if there is only one.
	Leads  func() bool
	Events Recorder
	// Grace is how long requests are answered after the context has ended.
	Grace time.Duration
	// Failed is told if the webhook stops serving before.
	Failed func(error)
	Log    logr.Logger
	Now    func() time.Time
}

// Webhook converts objects for the API server.
type Webhook struct {
	log         logr.Logger
	client      client.WithWatch
	server      *http.Server
	store       *store
	definitions *definitions
	served      atomic.Pointer[tls.Certificate]
	// changed is told of every event about a definition, for who looks after it; applied of what may have brought
	// objects of an older version, for who stores them anew.
	changed chan struct{}
	applied chan struct{}
	grace   time.Duration
	after   func(time.Duration) <-chan time.Time
	failed  func(error)
	ended   chan struct{}
	// trouble is what the last look failed with, so that it is told once.
	trouble string
}

// New makes a webhook. Nothing happens until it is started.
func New(s Settings) (*Webhook, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the webhook's scheme: %w", err)
		}
	}
	c, err := client.NewWithWatch(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making the webhook's client: %w", err)
	}
	converter, err := newConverter(expiryFrom(c))
	if err != nil {
		return nil, err
	}
	w := &Webhook{
		log: s.Log, client: c, changed: make(chan struct{}, 1), applied: make(chan struct{}, 1),
		grace: s.Grace, after: time.After, failed: s.Failed, ended: make(chan struct{}),
		store: &store{client: c, secret: s.Secret, names: s.Address.names(), now: s.Now},
		definitions: &definitions{client: c, address: s.Address, leads: s.Leads, answers: answers, now: s.Now,
			teller: teller{log: s.Log, events: s.Events}, contests: map[string]*contest{}},
	}
	mux := http.NewServeMux()
	mux.Handle(Path, newHandler(converter, s.Log))
	w.server = newServer(mux, w.certificate, s.Log)
	return w, nil
}

// Start serves on the listener, looks once after certificate and definitions, and goes on with both in the background
// until the context ends. If the first look fails, that is logged and tried again: objects that are stored as v1 need
// no webhook.
func (w *Webhook) Start(ctx context.Context, listener net.Listener) {
	w.serve(ctx, listener)
	first, cancel := context.WithTimeout(ctx, startsWithin)
	defer cancel()
	next := w.look(first)
	for _, name := range Definitions() {
		go w.watch(ctx, name)
	}
	go w.keep(ctx, next)
}

// MustConvert tells whether this replica has to be asked for conversions before its own caches are filled: some objects
// are stored as the older version, and the lists that fill the caches need them converted.
func (w *Webhook) MustConvert() bool { return w.served.Load() != nil && w.definitions.olderStored() }

// keep looks again and again.
func (w *Webhook) keep(ctx context.Context, next time.Duration) {
	for {
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-w.changed:
			timer.Stop()
		}
		next = w.look(ctx)
	}
}

// look renews the certificate if that is due and points the definitions here. It returns when to look again.
func (w *Webhook) look(ctx context.Context) time.Duration {
	again, err := w.try(ctx)
	if err != nil && ctx.Err() == nil && err.Error() != w.trouble {
		w.log.Error(err, "requests for v1beta1 may fail; trying again")
	}
	w.trouble = ""
	if err != nil {
		w.trouble = err.Error()
		return retries
	}
	return again
}

func (w *Webhook) try(ctx context.Context) (again time.Duration, err error) {
	defer contained(w.log, "looking after certificate and definitions", &err)
	material, err := w.store.current(ctx)
	if err != nil {
		return retries, err
	}
	pair, err := tls.X509KeyPair(material.certificate, material.key)
	if err != nil {
		return retries, fmt.Errorf("reading the webhook's certificate from Secret %s: %w", w.store.secret, err)
	}
	// Whoever is told of a new authority must find it served, and whoever still knows the old one must be served, too:
	// a new authority signs only once it is known (settles).
	w.served.Store(&pair)
	return w.definitions.point(ctx, material.bundle)
}

func (w *Webhook) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := w.served.Load(); c != nil {
		return c, nil
	}
	return nil, errors.New("there is no certificate yet")
}

// watch looks as soon as a definition changes, for instance because somebody applied the chart's again.
func (w *Webhook) watch(ctx context.Context, name string) {
	var seen edition
	refused := false
	for ctx.Err() == nil {
		events, err := w.client.Watch(ctx, &apiextensionsv1.CustomResourceDefinitionList{},
			client.MatchingFields{"metadata.name": name})
		if apierrors.IsForbidden(err) && !refused {
			w.log.Error(err, "a CustomResourceDefinition can't be watched, so that a change of it is answered only "+
				"within a minute",
				"definition", name)
		}
		refused = apierrors.IsForbidden(err)
		if err == nil {
			for event := range events.ResultChan() {
				ring(w.changed)
				if definition, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition); ok &&
					seen.differs(definition) {
					ring(w.applied)
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(retries):
		}
	}
}

// edition is what a definition says, for who stores objects anew. Each watch begins with an event about what has long
// been known, and conditions and annotations come and go: if each of them counted, nobody would wait after a failure.
type edition struct {
	uid        types.UID
	generation int64
	stored     []string
}

// differs tells whether a definition says something else than the last one that it was asked about.
func (e *edition) differs(definition *apiextensionsv1.CustomResourceDefinition) bool {
	stored := definition.Status.StoredVersions
	if e.uid == definition.UID && e.generation == definition.Generation && slices.Equal(e.stored, stored) {
		return false
	}
	e.uid, e.generation, e.stored = definition.UID, definition.Generation, stored
	return true
}

// ring tells whoever waits, or will.
func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
