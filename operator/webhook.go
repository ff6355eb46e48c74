package operator

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tenon-sh/tenon/internal/webhook"
)

// webhookSecretName keeps the webhook's certificate if the Service has no name to name it after.
const webhookSecretName = "karpenter-cert"

// validateWebhook is validate for how the API server reaches the webhook.
func (o *options) validateWebhook() error {
	if o.webhookURL == "" {
		return nil
	}
	at, err := url.Parse(o.webhookURL)
	if err != nil || at.Scheme != "https" || at.Hostname() == "" {
		return fmt.Errorf("--webhook-url: %q is not a URL that begins with https:// and has a host; use for instance "+
			"https://10.0.0.7:8443", o.webhookURL)
	}
	if o.webhookPort == 0 || o.disableWebhook {
		return fmt.Errorf("--webhook-url is given, but the webhook is off; remove it, or --disable-webhook and " +
			"--webhook-port=0")
	}
	return nil
}

// addWebhook starts to convert objects for the API server on this replica, and has the elected one store anew what is
// of older versions. It starts before the manager, whose caches may have to be filled with objects that the webhook
// converts.
//
// It returns nil if nothing is to be converted.
func addWebhook(ctx context.Context, on *deps) (*webhook.Webhook, error) {
	o, log := on.o, on.mgr.GetLogger().WithName("webhook")
	if o.disableWebhook || o.webhookPort == 0 {
		return nil, nil
	}
	listener, address, err := o.listen(on.config)
	if err != nil {
		return nil, err
	}
	if listener == nil {
		log.Info("the API server has no way to the webhook, so v1beta1 can't be used; give --karpenter-service or " +
			"--webhook-url")
		return nil, nil
	}
	return startWebhook(ctx, on, listener, address)
}

// startWebhook has the webhook serve on the listener. If it stops before the context ends, this replica ends, too.
func startWebhook(ctx context.Context, on *deps, listener net.Listener, address webhook.Address) (*webhook.Webhook,
	error) {
	o, log := on.o, on.mgr.GetLogger().WithName("webhook")
	hook, err := webhook.New(webhook.Settings{
		Config: rest.CopyConfig(on.config), Address: address, Secret: o.webhookSecret(), Leads: on.leads,
		Events: on.events, Grace: o.grace(address), Failed: on.lost, Log: log, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	hook.Start(ctx, listener)
	return hook, on.mgr.Add(manager.RunnableFunc(hook.Migrate))
}

// endpointGrace is how long a replica that is told to end still answers: until kube-proxy, or a load balancer, leads
// nobody to it any more.
const endpointGrace = 5 * time.Second

// grace is how long the webhook goes on at the end. An API server on this machine asks it directly, with nobody in
// between.
func (o *options) grace(address webhook.Address) time.Duration {
	if address.Service == nil && o.webhookURL == "" {
		return 0
	}
	return endpointGrace
}

// webhookSecret is where the certificate is kept.
func (o *options) webhookSecret() client.ObjectKey {
	key := client.ObjectKey{Namespace: ownNamespace(), Name: webhookSecretName}
	if o.karpenterService != "" {
		key.Name = o.karpenterService + "-cert"
	}
	return key
}

// listen opens the webhook's port and says how the API server reaches it: as told, or directly if the API server is on
// this machine, as in the lab, or by the Service. There is no listener if there is no way.
func (o *options) listen(config *rest.Config) (net.Listener, webhook.Address, error) {
	var address webhook.Address
	host, port := o.bindAddress, o.webhookPort
	direct := false
	switch {
	case o.webhookURL != "":
		address.URL = o.webhookURL
	case isLocal(config.Host): // it runs on this machine, where no Service leads anywhere
		direct, host = true, "127.0.0.1"
		if !o.webhookPortChosen {
			port = 0 // any that is free: several controllers may run on this machine
		}
	case o.karpenterService != "":
		address.Service = &apiextensionsv1.ServiceReference{
			Namespace: ownNamespace(), Name: o.karpenterService, Path: new(webhook.Path),
			Port: new(int32(o.webhookPort)),
		}
	default:
		return nil, address, nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, address, fmt.Errorf("--webhook-port %d: %w; give another port, or 0 for none", port, err)
	}
	if direct {
		address.URL = "https://" + listener.Addr().String()
	}
	if address.URL != "" {
		if at, err := url.Parse(address.URL); err == nil && (at.Path == "" || at.Path == "/") {
			at.Path = webhook.Path
			address.URL = at.String()
		}
	}
	return listener, address, nil
}

// isLocal tells whether an API server is on this machine.
func isLocal(server string) bool {
	at, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(at.Hostname())
	return at.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
