package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestIssuedCertificatesServeAndIdentify(t *testing.T) {
	authority, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	serving := mustIssue(t, authority, Leaf{CommonName: "server", Hosts: []string{"127.0.0.1"}})
	client := mustIssue(t, authority, Leaf{CommonName: "ann", Groups: []string{"masters"}})

	var who string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		who = subject.CommonName + "/" + strings.Join(subject.Organization, ",")
	}))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.Pair().Cert)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: pool}
	server.StartTLS()
	defer server.Close()

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{client}}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if who != "ann/masters" {
		t.Errorf("the server saw %q, want ann/masters", who)
	}
}

func TestAnotherAuthorityIsNotTrusted(t *testing.T) {
	ours, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := theirs.Issue(Leaf{CommonName: "mallory", Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(pair.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ours.Pair().Cert)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: pool}); err == nil {
		t.Error("a certificate of another authority with the same name was trusted")
	}
}

func TestParseAuthority(t *testing.T) {
	one, err := NewAuthority("one")
	if err != nil {
		t.Fatal(err)
	}
	two, err := NewAuthority("two")
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseAuthority(one.Pair())
	if err != nil {
		t.Fatalf("an authority can't read itself: %v", err)
	}
	if again.ExpiresBefore(time.Now().AddDate(5, 0, 0)) {
		t.Error("a new authority expires within five years")
	}
	for name, pair := range map[string]Pair{
		"mixed":   {Cert: one.Pair().Cert, Key: two.Pair().Key},
		"empty":   {},
		"garbage": {Cert: []byte("x"), Key: []byte("y")},
	} {
		if _, err := ParseAuthority(pair); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestKubeconfigNamesServerAndUser(t *testing.T) {
	text := string(Kubeconfig("https://127.0.0.1:1", []byte("ca"), "ann", Pair{Cert: []byte("c"), Key: []byte("k")}))
	for _, want := range []string{`server: "https://127.0.0.1:1"`, "certificate-authority-data: Y2E=",
		"client-certificate-data: Yw==", "client-key-data: aw==", "current-context: lab"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func mustIssue(t *testing.T, authority *Authority, leaf Leaf) tls.Certificate {
	t.Helper()
	pair, err := authority.Issue(leaf)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
