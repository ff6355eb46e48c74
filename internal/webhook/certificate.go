package webhook

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	// authorityLasts and certificateLasts are how long each is good for. Both are renewed when a third of that is left.
	authorityLasts   = 5 * 365 * 24 * time.Hour
	certificateLasts = 90 * 24 * time.Hour
	// backdated is how far clocks of machines may differ.
	backdated = 5 * time.Minute
	// settles is how long a new authority waits before it signs, so that every API server has heard of it.
	settles = time.Minute
)

// material is what a webhook proves itself with. The fields are PEM, as a Secret holds them.
type material struct {
	// bundle are the authorities that are trusted, the newest first, and authorityKey is the key of the newest.
	bundle, authorityKey []byte
	// certificate and key are what is served.
	certificate, key []byte
}

// renew returns what to have at this time, for a server that is called by these names. Material that is good stays as
// it is.
func renew(have material, now time.Time, names []string) (material, error) {
	authorities, signer := have.authorities(now)
	if signer == nil || due(authorities[0], authorityLasts, now) {
		made, key, err := newAuthority(now)
		if err != nil {
			return material{}, err
		}
		authorities = append([]*x509.Certificate{made}, authorities...)
		signer, have.authorityKey = key, encodeKey(key)
	}
	have.bundle = encodeCertificates(authorities)
	if have.good(authorities, now, names) {
		return have, nil
	}
	leaf, key, err := newCertificate(authorities[0], signer, now, names)
	if err != nil {
		return material{}, err
	}
	have.certificate, have.key = leaf, encodeKey(key)
	return have, nil
}

// good tells whether the certificate can go on being served.
func (m material) good(authorities []*x509.Certificate, now time.Time, names []string) bool {
	pair, err := tls.X509KeyPair(m.certificate, m.key)
	if err != nil || due(pair.Leaf, certificateLasts, now) {
		return false
	}
	for _, name := range names {
		if pair.Leaf.VerifyHostname(name) != nil {
			return false
		}
	}
	if pair.Leaf.CheckSignatureFrom(authorities[0]) == nil {
		return true
	}
	// An older authority has signed it. That is good enough until the newest one is known everywhere.
	fresh := now.Sub(authorities[0].NotBefore) < backdated+settles
	return fresh && slices.ContainsFunc(authorities[1:], func(a *x509.Certificate) bool {
		return pair.Leaf.CheckSignatureFrom(a) == nil
	})
}

// authorities returns those that have not expired, and the key of the newest; no key if it is none of hers.
func (m material) authorities(now time.Time) ([]*x509.Certificate, *ecdsa.PrivateKey) {
	var out []*x509.Certificate
	for rest := m.bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if a, err := x509.ParseCertificate(block.Bytes); err == nil && now.Before(a.NotAfter) {
			out = append(out, a)
		}
	}
	block, _ := pem.Decode(m.authorityKey)
	if block == nil || len(out) == 0 {
		return out, nil
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil || !key.PublicKey.Equal(out[0].PublicKey) {
		return out, nil
	}
	return out, key
}

func due(c *x509.Certificate, lasts time.Duration, now time.Time) bool {
	return c.NotAfter.Sub(now) < lasts/3 || now.Before(c.NotBefore)
}

func (m material) equal(other material) bool {
	return bytes.Equal(m.bundle, other.bundle) && bytes.Equal(m.authorityKey, other.authorityKey) &&
		bytes.Equal(m.certificate, other.certificate) && bytes.Equal(m.key, other.key)
}

func newAuthority(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the key of the webhook's authority: %w", err)
	}
	template, err := blank(now, authorityLasts)
	if err != nil {
		return nil, nil, err
	}
	template.Subject = pkix.Name{CommonName: "karpenter-webhook-ca"}
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true,
		x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("making the webhook's authority: %w", err)
	}
	made, err := x509.ParseCertificate(der)
	return made, key, err
}

func newCertificate(authority *x509.Certificate, signer *ecdsa.PrivateKey, now time.Time, names []string) ([]byte,
	*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the webhook's key: %w", err)
	}
	template, err := blank(now, certificateLasts)
	if err != nil {
		return nil, nil, err
	}
	template.Subject = pkix.Name{CommonName: "karpenter-webhook"}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature,
		[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("making the webhook's certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, nil
}

func blank(now time.Time, lasts time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("numbering a certificate: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-backdated), NotAfter: now.Add(lasts)}, nil
}

func encodeCertificates(all []*x509.Certificate) []byte {
	var out []byte
	for _, c := range all {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

// encodeKey writes a key of the curve that keys are made on, which can always be written.
func encodeKey(key *ecdsa.PrivateKey) []byte {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}
