package operator

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

func TestHowTheWebhookIsReached(t *testing.T) {
	t.Setenv("SYSTEM_NAMESPACE", "karpenter")
	for name, tc := range map[string]struct {
		args   []string
		server string
		want   string // the URL, the Service, or what is wrong
		secret string
	}{
		"switched off": {[]string{"--karpenter-service=tenon", "--webhook-port=0"},
			"https://10.0.0.1", "off", ""},
		"not at all": {nil, "https://10.0.0.1:6443", "no way", ""},
		"by a URL": {[]string{"--webhook-url=https://host.example:9000"},
			"https://10.0.0.1:6443", "https://host.example:9000/conversion", "karpenter-cert"},
		"by a URL with a path": {[]string{"--webhook-url=https://host.example/a"}, "https://10.0.0.1:6443",
			"https://host.example/a", "karpenter-cert"},
		"on this machine": {nil, "https://127.0.0.1:6443", "https://127.0.0.1:", "karpenter-cert"},
		"on this machine, with a Service": {[]string{"--karpenter-service=tenon"}, "https://127.0.0.1:6443",
			"https://127.0.0.1:", "tenon-cert"},
		"on this machine by name": {nil, "https://localhost:6443", "https://127.0.0.1:", "karpenter-cert"},
		"by a wrong URL":          {[]string{"--webhook-url=http://host.example"}, "", "--webhook-url", ""},
		"by a URL, and off": {[]string{"--webhook-url=https://host.example", "--disable-webhook"}, "",
			"--webhook-url", ""},
		"on a wrong port": {[]string{"--webhook-port=70000"}, "", "--webhook-port", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, f := newOptions(twoClouds()), pflag.NewFlagSet("test", pflag.ContinueOnError)
			o.register(f)
			if err := f.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			o.bindAddress = "127.0.0.1"
			got, secret := reached(t, o, tc.server)
			if !strings.HasPrefix(got, tc.want) || secret != tc.secret {
				t.Errorf("got %s and the Secret %q, want %s and %q", got, secret, tc.want, tc.secret)
			}
		})
	}
}

// reached says how the API server would reach the webhook, and where its certificate would be.
func reached(t *testing.T, o *options, server string) (how, secret string) {
	t.Helper()
	if err := o.validate(); err != nil {
		return err.Error(), ""
	}
	if o.disableWebhook || o.webhookPort == 0 {
		return "off", ""
	}
	if o.webhookURL != "" {
		o.webhookPort, o.webhookPortChosen = 0, true // any that is free, for the test
	}
	listener, address, err := o.listen(&rest.Config{Host: server})
	if err != nil {
		return err.Error(), ""
	}
	if listener == nil {
		return "no way", ""
	}
	_ = listener.Close()
	return address.URL, o.webhookSecret().Name
}

func TestWebhookOfAService(t *testing.T) {
	t.Setenv("SYSTEM_NAMESPACE", "karpenter")
	o := &options{karpenterService: "tenon", bindAddress: "127.0.0.1"}
	listener, address, err := o.listen(&rest.Config{Host: "https://10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	service := address.Service
	if service == nil || service.Name != "tenon" || service.Namespace != "karpenter" ||
		*service.Path != "/conversion" || address.URL != "" {
		t.Errorf("the API server is sent to %v, %q", service, address.URL)
	}
	if got := o.webhookSecret().String(); got != "karpenter/tenon-cert" {
		t.Errorf("the certificate is in %s", got)
	}
}
