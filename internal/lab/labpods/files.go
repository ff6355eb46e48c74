package labpods

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// accountPath is where pods find the token of their service account.
const accountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// refreshEvery is how often tokens are asked for again; they hold for an hour at least.
const refreshEvery = 10 * time.Minute

// hostPath is where a path of a container is on this machine, if it is below one of its mounts; other texts stay as
// they are.
func (p *pod) hostPath(c *corev1.Container, text string) string {
	for _, mount := range c.VolumeMounts {
		rest, below := strings.CutPrefix(text, mount.MountPath)
		if below && (rest == "" || strings.HasPrefix(rest, "/")) {
			return p.path("volumes", mount.Name, mount.SubPath) + rest
		}
	}
	return text
}

// temporary is the folder for temporary files. Where the root is read-only and nothing is mounted there, it can't be
// written to.
func (p *pod) temporary(c *corev1.Container) string {
	if mounted := p.hostPath(c, "/tmp"); mounted != "/tmp" {
		return mounted
	}
	if s := c.SecurityContext; s != nil && s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem {
		return "/proc/read-only"
	}
	return p.path()
}

// writeFiles makes the pod's volumes, and a kubeconfig with the token that it finds in them: a process has no mounts,
// so it can't look at the path where pods have it.
func (p *pod) writeFiles(ctx context.Context) error {
	for i := range p.object.Spec.Volumes {
		v := &p.object.Spec.Volumes[i]
		files, err := p.contents(ctx, v)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		if err := os.MkdirAll(p.path("volumes", v.Name), 0o700); err != nil {
			return err
		}
		for name, content := range files {
			if err := replace(p.path("volumes", v.Name, name), content); err != nil {
				return err
			}
		}
	}
	return p.writeKubeconfig()
}

func (p *pod) writeKubeconfig() error {
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: p.r.o.Config.Host}
	config.AuthInfos["account"] = &clientcmdapi.AuthInfo{}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "account", Namespace: p.object.Namespace}
	config.CurrentContext = "lab"
	for _, c := range p.containers {
		if folder := p.hostPath(c.spec, accountPath); folder != accountPath {
			config.Clusters["lab"].CertificateAuthority = filepath.Join(folder, "ca.crt")
			config.AuthInfos["account"].TokenFile = filepath.Join(folder, "token")
		}
	}
	return clientcmd.WriteToFile(*config, p.path("kubeconfig"))
}

// refresh writes the files again now and then, so that tokens hold and changes of Secrets arrive.
func (p *pod) refresh() {
	for p.executes() && p.pause(refreshEvery) {
		if err := p.writeFiles(p.ctx); err != nil && p.ctx.Err() == nil {
			p.r.o.Log("the files of pod %s: %v", p.name(), err)
		}
	}
}

// contents are the files of a volume. A kind of volume that the lab does not know is an empty folder.
func (p *pod) contents(ctx context.Context, v *corev1.Volume) (map[string][]byte, error) {
	switch {
	case v.Secret != nil:
		return p.secret(ctx, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.ConfigMap != nil:
		return p.configMap(ctx, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Projected != nil:
		return p.projected(ctx, v.Projected)
	}
	return nil, nil
}

func (p *pod) projected(ctx context.Context, v *corev1.ProjectedVolumeSource) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, source := range v.Sources {
		var files map[string][]byte
		var err error
		switch {
		case source.ServiceAccountToken != nil:
			files, err = p.token(ctx, source.ServiceAccountToken)
		case source.ConfigMap != nil:
			files, err = p.configMap(ctx, source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional)
		case source.Secret != nil:
			files, err = p.secret(ctx, source.Secret.Name, source.Secret.Items, source.Secret.Optional)
		case source.DownwardAPI != nil:
			files, err = p.downward(source.DownwardAPI.Items)
		}
		if err != nil {
			return nil, err
		}
		for name, content := range files {
			out[name] = content
		}
	}
	return out, nil
}

// token asks for a token of the pod's account that holds as long as the pod is there, as kubelets do.
func (p *pod) token(ctx context.Context, v *corev1.ServiceAccountTokenProjection) (map[string][]byte, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: v.ExpirationSeconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.object.Name,
			UID: p.object.UID},
	}}
	if v.Audience != "" {
		request.Spec.Audiences = []string{v.Audience}
	}
	account := p.object.Spec.ServiceAccountName
	answer, err := p.r.api.CoreV1().ServiceAccounts(p.object.Namespace).CreateToken(ctx, account, request,
		metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("a token of service account %s: %w", account, err)
	}
	return map[string][]byte{v.Path: []byte(answer.Status.Token)}, nil
}

func (p *pod) configMap(ctx context.Context, name string, items []corev1.KeyToPath, may *bool) (map[string][]byte,
	error) {
	found, err := p.r.api.CoreV1().ConfigMaps(p.object.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, optional(may, err)
	}
	all := found.BinaryData
	if all == nil {
		all = map[string][]byte{}
	}
	for key, value := range found.Data {
		all[key] = []byte(value)
	}
	return pick(all, items), nil
}

func (p *pod) secret(ctx context.Context, name string, items []corev1.KeyToPath, may *bool) (map[string][]byte, error) {
	found, err := p.r.api.CoreV1().Secrets(p.object.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, optional(may, err)
	}
	return pick(found.Data, items), nil
}

func (p *pod) downward(items []corev1.DownwardAPIVolumeFile) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, item := range items {
		if item.FieldRef == nil {
			continue
		}
		value, err := p.field(item.FieldRef.FieldPath)
		if err != nil {
			return nil, err
		}
		out[item.Path] = []byte(value)
	}
	return out, nil
}

// pick renames the keys that a volume asks for; without any it is all of them.
func pick(all map[string][]byte, items []corev1.KeyToPath) map[string][]byte {
	if len(items) == 0 {
		return all
	}
	out := map[string][]byte{}
	for _, item := range items {
		if content, ok := all[item.Key]; ok {
			out[item.Path] = content
		}
	}
	return out
}

// replace writes a private file whole or not at all, below its folder.
func replace(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
