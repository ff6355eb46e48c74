package labpods

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// environment is what the process of a container finds: what its pod says, what Kubernetes adds, and, because a process
// has no mounts, where its files are.
func (p *pod) environment(ctx context.Context, c *corev1.Container) ([]string, error) {
	env := map[string]string{}
	if p.r.o.Env != nil {
		for _, pair := range p.r.o.Env() {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
	}
	server, err := url.Parse(p.r.o.Config.Host)
	if err != nil {
		return nil, fmt.Errorf("the lab's address: %w", err)
	}
	env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"], _ = net.SplitHostPort(server.Host)
	env["HOSTNAME"], env["HOME"], env["TMPDIR"] = p.object.Name, "/", p.temporary(c)
	for _, from := range c.EnvFrom {
		if err := p.addAll(ctx, env, from); err != nil {
			return nil, err
		}
	}
	for _, one := range c.Env {
		value, err := p.valueOf(ctx, c, one)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", one.Name, err)
		}
		env[one.Name] = p.hostPath(c, value)
	}
	// What a real pod finds at a fixed path, or has to itself.
	env["KUBECONFIG"] = p.path("kubeconfig")
	if _, given := env["BIND_ADDRESS"]; !given {
		env["BIND_ADDRESS"] = p.address
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out, nil
}

func (p *pod) addAll(ctx context.Context, env map[string]string, from corev1.EnvFromSource) error {
	core := p.r.api.CoreV1()
	switch {
	case from.ConfigMapRef != nil:
		found, err := core.ConfigMaps(p.object.Namespace).Get(ctx, from.ConfigMapRef.Name, metav1.GetOptions{})
		if err != nil {
			return optional(from.ConfigMapRef.Optional, err)
		}
		for name, value := range found.Data {
			env[from.Prefix+name] = value
		}
	case from.SecretRef != nil:
		found, err := core.Secrets(p.object.Namespace).Get(ctx, from.SecretRef.Name, metav1.GetOptions{})
		if err != nil {
			return optional(from.SecretRef.Optional, err)
		}
		for name, value := range found.Data {
			env[from.Prefix+name] = string(value)
		}
	}
	return nil
}

// optional forgives that something is missing where the pod says so.
func optional(may *bool, err error) error {
	if may != nil && *may {
		return nil
	}
	return err
}

func (p *pod) valueOf(ctx context.Context, c *corev1.Container, one corev1.EnvVar) (string, error) {
	from := one.ValueFrom
	switch {
	case from == nil:
		return one.Value, nil
	case from.FieldRef != nil:
		return p.field(from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		return p.resource(c, from.ResourceFieldRef)
	case from.ConfigMapKeyRef != nil:
		found, err := p.r.api.CoreV1().ConfigMaps(p.object.Namespace).Get(ctx, from.ConfigMapKeyRef.Name,
			metav1.GetOptions{})
		if err != nil {
			return "", optional(from.ConfigMapKeyRef.Optional, err)
		}
		return found.Data[from.ConfigMapKeyRef.Key], nil
	case from.SecretKeyRef != nil:
		found, err := p.r.api.CoreV1().Secrets(p.object.Namespace).Get(ctx, from.SecretKeyRef.Name, metav1.GetOptions{})
		if err != nil {
			return "", optional(from.SecretKeyRef.Optional, err)
		}
		return string(found.Data[from.SecretKeyRef.Key]), nil
	}
	return "", fmt.Errorf("the lab does not know this source of a value: %v", from)
}

// field is what the downward API gives.
func (p *pod) field(path string) (string, error) {
	o := p.object
	known := map[string]string{
		"metadata.name": o.Name, "metadata.namespace": o.Namespace, "metadata.uid": string(o.UID),
		"spec.nodeName":           o.Spec.NodeName,
		"spec.serviceAccountName": o.Spec.ServiceAccountName, "status.podIP": p.address, "status.hostIP": "127.0.0.1",
	}
	if value, ok := known[path]; ok {
		return value, nil
	}
	for prefix, all := range map[string]map[string]string{"metadata.labels['": o.Labels,
		"metadata.annotations['": o.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			return all[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("the lab does not know the field %s", path)
}

// resource is a request or limit in units of its divisor, rounded up. A limit that is not set is what the node has.
func (p *pod) resource(c *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := c.Resources.Requests
	if kind == "limits" {
		list = c.Resources.Limits
	}
	amount, given := list[corev1.ResourceName(name)]
	if !given && kind == "limits" {
		amount = nodeHas()[corev1.ResourceName(name)]
	}
	divisor := ref.Divisor
	if name == string(corev1.ResourceCPU) {
		unit := divisor.MilliValue()
		if unit == 0 {
			unit = 1000
		}
		return strconv.FormatInt((amount.MilliValue()+unit-1)/unit, 10), nil
	}
	unit := max(divisor.Value(), 1)
	return strconv.FormatInt((amount.Value()+unit-1)/unit, 10), nil
}
