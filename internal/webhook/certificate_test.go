package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

// verify does what the API server does: it trusts the bundle and calls the server by its name.
func verify(t *testing.T, bundle []byte, served material, now time.Time) error {
	t.Helper()
	pair, err := tls.X509KeyPair(served.certificate, served.key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		t.Fatal("there is no authority")
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "karpenter.kube-system.svc", CurrentTime: now})
	return err
}

// TestRenewalNeverBreaksTrust: over ten years of looks, every certificate that is served is trusted by who knows the
// bundle of this look or the one before, and by itself nothing expires.
func TestRenewalNeverBreaksTrust(t *testing.T) {
	names := []string{"karpenter.kube-system.svc", "127.0.0.1"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	have, err := renew(material{}, now, names)
	if err != nil {
		t.Fatal(err)
	}
	authorities, certificates := 0, 0
	for range 10 * 365 {
		for _, step := range []time.Duration{time.Minute, 2 * time.Minute, 24 * time.Hour} {
			now = now.Add(step)
			next, err := renew(have, now, names)
			if err != nil {
				t.Fatal(err)
			}
			if string(next.authorityKey) != string(have.authorityKey) {
				authorities++
			}
			if string(next.certificate) != string(have.certificate) {
				certificates++
			}
			if err := verify(t, next.bundle, next, now); err != nil {
				t.Fatalf("%s: what is served now is not trusted: %v", now, err)
			}
			if err := verify(t, have.bundle, next, now); err != nil {
				t.Fatalf("%s: an API server that has not heard of the last change does not trust what is served: %v",
					now, err)
			}
			if err := verify(t, next.bundle, have, now); err != nil {
				t.Fatalf("%s: another replica's certificate from before is not trusted: %v", now, err)
			}
			have = next
		}
	}
	if authorities != 3 || certificates < 50 || certificates > 80 {
		t.Errorf("in ten years there were %d new authorities and %d new certificates", authorities, certificates)
	}
}

func TestRenewalRepairs(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	names := []string{"karpenter.kube-system.svc"}
	good, err := renew(material{}, now, names)
	if err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string]material{
		"nothing":        {},
		"no certificate": {bundle: good.bundle, authorityKey: good.authorityKey},
		"no authority":   {certificate: good.certificate, key: good.key},
		"nonsense": {bundle: []byte("x"), authorityKey: []byte("x"), certificate: []byte("x"),
			key: []byte("x")},
		"no authority's key": {bundle: good.bundle, certificate: good.certificate, key: good.key},
		"another's key": {bundle: good.bundle, authorityKey: good.key, certificate: good.certificate,
			key: good.key},
		"key and certificate": {bundle: good.bundle, authorityKey: good.authorityKey, certificate: good.certificate,
			key: good.authorityKey},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := renew(broken, now, names)
			if err != nil {
				t.Fatal(err)
			}
			if err := verify(t, made.bundle, made, now); err != nil {
				t.Error(err)
			}
			again, err := renew(made, now, names)
			if err != nil || !again.equal(made) {
				t.Errorf("what is good was renewed (%v)", err)
			}
		})
	}
	other, err := renew(good, now, []string{"another.name"})
	if err != nil || other.equal(good) {
		t.Errorf("a server of another name keeps its certificate (%v)", err)
	}
}
