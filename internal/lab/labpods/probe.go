package labpods

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe asks the process how it is, until it has ended: readiness decides whether the pod is ready, and a process that
// is not alive closes sick.
func (c *container) probe(sick chan<- struct{}, ended <-chan struct{}) *sync.WaitGroup {
	var asking sync.WaitGroup
	if p := c.spec.ReadinessProbe; p != nil {
		asking.Go(func() { c.ask(p, ended, c.setReady, nil) })
	}
	if p := c.spec.LivenessProbe; p != nil {
		asking.Go(func() { c.ask(p, ended, func(bool) {}, func() { close(sick) }) })
	}
	return &asking
}

// ask asks again and again. turned hears of each change of the answer; failed is called once if it may end the process.
func (c *container) ask(p *corev1.Probe, ended <-chan struct{}, turned func(bool), failed func()) {
	wait := time.Duration(p.InitialDelaySeconds) * time.Second
	var good, bad int32
	for {
		select {
		case <-ended:
			return
		case <-time.After(wait):
		}
		wait = time.Duration(max(p.PeriodSeconds, 1)) * time.Second
		if c.answers(p) == nil {
			good, bad = good+1, 0
		} else {
			good, bad = 0, bad+1
		}
		switch {
		case good >= max(p.SuccessThreshold, 1):
			turned(true)
		case bad >= max(p.FailureThreshold, 1):
			turned(false)
			if failed != nil {
				failed()
				return
			}
		}
	}
}

func (c *container) setReady(ready bool) {
	c.mu.Lock()
	news := c.ready != ready
	c.ready = ready
	c.mu.Unlock()
	if news {
		c.p.changed()
	}
}

// answers asks once. Other probes than those over HTTP are content.
func (c *container) answers(p *corev1.Probe) error {
	if p.HTTPGet == nil {
		return nil
	}
	port, err := c.port(p.HTTPGet.Port)
	if err != nil {
		return err
	}
	timeout := time.Duration(max(p.TimeoutSeconds, 1)) * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	scheme := strings.ToLower(string(p.HTTPGet.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(c.p.address, port)+
		p.HTTPGet.Path, nil)
	if err != nil {
		return err
	}
	// As kubelets do: no connection is kept, no certificate checked.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode >= 400 {
		return fmt.Errorf("%s: %s", request.URL, answer.Status)
	}
	return nil
}

func (c *container) port(port intstr.IntOrString) (string, error) {
	if port.Type == intstr.Int {
		return strconv.Itoa(port.IntValue()), nil
	}
	for _, known := range c.spec.Ports {
		if known.Name == port.StrVal {
			return strconv.Itoa(int(known.ContainerPort)), nil
		}
	}
	return "", fmt.Errorf("the container has no port named %s", port.StrVal)
}
