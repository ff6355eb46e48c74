package labpods

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestWhichImagesAreExecuted(t *testing.T) {
	for image, want := range map[string]bool{
		"tenon": true, "tenon:1": true, "ghcr.io/tenon-sh/tenon:0.1.0": true, "registry:5000/a/tenon@sha256:00": true,
		"localhost:5000/tenon:1@sha256:00": true,
		"nottenon":                         false, "tenon/other:1": false, "docker.io/library/busybox": false,
		"": false,
	} {
		if got := isTenon(image); got != want {
			t.Errorf("%q: %v, want %v", image, got, want)
		}
	}
}

// onePod is a pod of a runner that has done nothing yet.
func onePod(t *testing.T, c corev1.Container) *pod {
	t.Helper()
	dir := t.TempDir()
	r := &Runner{o: Options{Dir: dir, Executable: "/bin/false"}, addresses: newAddresses(dir)}
	return newPod(r, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u",
		Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{c}}})
}

// TestOnlyTheControllerIsRun: whoever may create pods must not run other programs of this machine.
func TestOnlyTheControllerIsRun(t *testing.T) {
	for name, c := range map[string]corev1.Container{
		"another command":    {Image: "tenon", Command: []string{"/bin/sh"}, Args: []string{"-c", "true"}},
		"another subcommand": {Image: "tenon", Args: []string{"lab", "down"}},
		"both":               {Image: "tenon", Command: []string{"/tenon", "demo"}},
	} {
		p := onePod(t, c)
		if cmd, err := p.containers[0].command(); err == nil {
			t.Errorf("%s: would run %v", name, cmd.Args)
		}
	}
}

func TestPathsBelowMounts(t *testing.T) {
	readOnly := true
	c := corev1.Container{Image: "tenon", VolumeMounts: []corev1.VolumeMount{{Name: "cert", MountPath: "/etc/cert"}},
		SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: &readOnly}}
	p := onePod(t, c)
	for text, want := range map[string]string{
		"/etc/cert": p.path("volumes", "cert"), "/etc/cert/tls.crt": p.path("volumes", "cert", "tls.crt"),
		"/etc/certain": "/etc/certain", "info": "info",
	} {
		if got := p.hostPath(&c, text); got != want {
			t.Errorf("%s is at %s, want %s", text, got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(p.temporary(&c), "x"), nil, 0o600); err == nil {
		t.Error("a pod with a read-only root and no volume can write temporary files")
	}
}

func TestDownwardAPI(t *testing.T) {
	c := corev1.Container{Image: "tenon", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}
	p := onePod(t, c)
	for _, try := range []struct{ resource, divisor, want string }{
		{"requests.cpu", "1m", "1500"}, {"requests.cpu", "0", "2"}, {"limits.memory", "0", "1073741824"},
		{"limits.memory", "1Mi", "1024"}, {"limits.cpu", "1", "8"},
	} {
		got, err := p.resource(&c, &corev1.ResourceFieldSelector{Resource: try.resource,
			Divisor: resource.MustParse(try.divisor)})
		if err != nil || got != try.want {
			t.Errorf("%s by %s is %s (%v), want %s", try.resource, try.divisor, got, err, try.want)
		}
	}
	for path, want := range map[string]string{"metadata.namespace": "ns", "metadata.labels['a']": "b",
		"status.podIP": p.address} {
		if got, err := p.field(path); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", path, got, err, want)
		}
	}
	if _, err := p.field("spec.nonsense"); err == nil {
		t.Error("an unknown field has a value")
	}
}

func TestAddressesAreDistinct(t *testing.T) {
	a, seen := newAddresses("/some/lab"), map[string]bool{}
	for range 200 {
		address := a.take()
		if seen[address] || !strings.HasPrefix(address, "127.") {
			t.Fatalf("%s again, or no loopback address", address)
		}
		seen[address] = true
	}
}

// TestLogsAsKubectlAsksForThem: tails, times, limits, and the log of the process before.
func TestLogsAsKubectlAsksForThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.log")
	for _, text := range []string{"of before\n", "one\ntwo\nth"} {
		l, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = l.Write([]byte(text))
		_, _ = l.Write([]byte("ree\n"))
		l.close()
	}
	for query, want := range map[string]string{"": "one\ntwo\nthree\n", "tailLines=1": "three\n", "tailLines=0": "",
		"limitBytes=5": "one\nt", "sinceSeconds=3600": "one\ntwo\nthree\n"} {
		if got := sendLog(t, path, query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := sendLog(t, previous(path), ""); got != "of before\nree\n" {
		t.Errorf("the process before said %q", got)
	}
	first, _, _ := strings.Cut(sendLog(t, path, "timestamps=true"), " ")
	if _, err := time.Parse(time.RFC3339Nano, first); err != nil {
		t.Errorf("a line with its time begins with %s", first)
	}
	if said := lastLine(path); said != "three" {
		t.Errorf("the last line is %q", said)
	}
}

func sendLog(t *testing.T, path, query string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s := &sender{w: w, times: values.Get("timestamps") == "true", since: since(values),
		limit: number(values, "limitBytes", -1)}
	if err := s.tail(file, number(values, "tailLines", -1)); err != nil {
		t.Fatal(err)
	}
	return w.Body.String()
}

// TestProbes: a process is ready when it says so, and sick when it does not answer.
func TestProbes(t *testing.T) {
	answers := func(code int) intstr.IntOrString {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
		}), ReadHeaderTimeout: time.Second}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
		return intstr.FromInt32(int32(listener.Addr().(*net.TCPAddr).Port))
	}
	probe := func(port intstr.IntOrString) *corev1.Probe {
		return &corev1.Probe{FailureThreshold: 1, PeriodSeconds: 1,
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: port}}}
	}
	named := answers(http.StatusOK)
	p := onePod(t, corev1.Container{Image: "tenon", ReadinessProbe: probe(intstr.FromString("http")),
		LivenessProbe: probe(answers(http.StatusInternalServerError)),
		Ports:         []corev1.ContainerPort{{Name: "http", ContainerPort: named.IntVal}}})
	p.address = "127.0.0.1"
	sick, ended := make(chan struct{}), make(chan struct{})
	asking := p.containers[0].probe(sick, ended)
	for what, happens := range map[string]<-chan struct{}{"is ready": p.news, "is sick": sick} {
		select {
		case <-happens:
		case <-time.After(time.Minute):
			t.Errorf("nobody notices that it %s", what)
		}
	}
	close(ended)
	asking.Wait()
	if !p.containers[0].status().Ready {
		t.Error("a process whose probe succeeds is not ready")
	}
	if _, err := p.containers[0].port(intstr.FromString("none")); err == nil {
		t.Error("a port that the container does not have was found")
	}
}
