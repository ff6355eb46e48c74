package labpods

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// TestConfinement: a process lacks what the security settings of its container take from it, writes to its volumes and
// nowhere else. Without settings it may do all that its user may.
func TestConfinement(t *testing.T) {
	no, yes := false, true
	chart := &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	for name, tc := range map[string]struct {
		settings *corev1.SecurityContext
		want     []string
		not      []string
	}{
		"as the chart says": {chart, []string{"NoNewPrivs:\t1", "CapEff:\t0000000000000000", "wrote a volume"},
			[]string{"wrote a read-only volume", "wrote elsewhere"}},
		"without settings": {nil, []string{"NoNewPrivs:\t0", "wrote a volume", "wrote elsewhere"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			said := confined(t, tc.settings)
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(said, not) {
					t.Errorf("it says %q:\n%s", not, said)
				}
			}
		})
	}
}

// confined is what a script prints that runs as a container with these settings.
func confined(t *testing.T, settings *corev1.SecurityContext) string {
	t.Helper()
	script, elsewhere := filepath.Join(t.TempDir(), "tenon"), t.TempDir()
	const text = `#!/bin/sh
cat /proc/self/status
echo x > "$VOLUME/a" && echo wrote a volume
echo x > "$READ_ONLY/a" && echo wrote a read-only volume
echo x > "$ELSEWHERE/a" && echo wrote elsewhere
exit 0
`
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	p := onePod(t, corev1.Container{Image: "tenon", SecurityContext: settings,
		Env: []corev1.EnvVar{{Name: "VOLUME", Value: "/scratch"}, {Name: "READ_ONLY", Value: "/etc/a"},
			{Name: "ELSEWHERE", Value: elsewhere}},
		VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"},
			{Name: "a", MountPath: "/etc/a", ReadOnly: true}}})
	p.r.o.Executable, p.r.o.Config = script, &rest.Config{Host: "https://127.0.0.1:6443"}
	p.r.o.Log = func(format string, args ...any) { t.Fatalf(format, args...) }
	for _, volume := range []string{"scratch", "a"} {
		if err := os.MkdirAll(p.path("volumes", volume), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.containers[0].once(); fmt.Sprint(err) != "exit status 0" {
		t.Fatal(err)
	}
	said, err := os.ReadFile(p.containers[0].logPath())
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}
