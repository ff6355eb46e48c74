package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/tenon-sh/tenon/lab/internal/labdir"
	"github.com/tenon-sh/tenon/lab/internal/process"
)

// probeInterval is short because a start waits on it a handful of times.
const probeInterval = 25 * time.Millisecond

// Probe asks the parts of a lab how they are, over TLS with the lab's own
// authority and a client certificate.
type Probe struct {
	client *http.Client
}

// NewProbe reads the certificates of the lab in dir.
func NewProbe(dir labdir.Dir) (*Probe, error) {
	authority, err := os.ReadFile(dir.Path("pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the lab's authority: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(dir.Path("pki", "supervisor.crt"), dir.Path("pki", "supervisor.key"))
	if err != nil {
		return nil, fmt.Errorf("read the lab's client certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &Probe{client: &http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair},
				MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
	}}, nil
}

// Well returns nil when the URL answers 200.
func (p *Probe) Well(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: %s: %.300s", url, response.Status, body)
	}
	return nil
}

// until asks again and again until check succeeds, the process behind it ends,
// or ctx does.
func until(ctx context.Context, p *process.Process, check func(context.Context) error) error {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		last := check(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.Done():
			return p.Failure()
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s was not ready in time: %w", p.Name(), last)
			}
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
