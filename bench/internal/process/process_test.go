package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(Spec{Name: "the child", Command: []string{"/bin/sh", "-c", script},
		Log: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestAwaitReadyTellsWhyAProcessEnded(t *testing.T) {
	p := start(t, "echo first; echo the reason >&2; exit 3")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := p.AwaitReady(ctx)
	if err == nil || err.Error() != "the child ended by itself (exit status 3): the reason" {
		t.Errorf("got %v", err)
	}
}

func TestStopEndsAProcess(t *testing.T) {
	p := start(t, "exec sleep 600")
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended():
	default:
		t.Error("it still runs")
	}
	if _, err := p.Usage(); err == nil {
		t.Error("a process that is gone has no usage")
	}
}

func TestStartKeepsTheUsersSettingsOut(t *testing.T) {
	t.Setenv("METRICS_PORT", "1")
	p := start(t, `test -z "$METRICS_PORT" && test -n "$PATH"`)
	<-p.Ended()
	if p.failure != nil {
		t.Errorf("the child saw a setting of the user: %v", p.failure)
	}
}

func TestLastLine(t *testing.T) {
	cases := []struct{ log, want string }{
		{"", ""}, {"\n\n", ""}, {"a\nb\n\n", ": b"}, {strings.Repeat("x", 400), ": " + strings.Repeat("x",
			300) + "..."},
	}
	for _, c := range cases {
		if got := lastLine([]byte(c.log)); got != c.want {
			t.Errorf("lastLine(%q) = %q; want %q", c.log, got, c.want)
		}
	}
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	if ports[0] == ports[1] || ports[1] == ports[2] || ports[0] == ports[2] {
		t.Errorf("got %v", ports)
	}
}

func TestExecutable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Dir(file), file + "-missing"} {
		if _, err := Executable(path); err == nil || !strings.Contains(err.Error(), "is not an executable file") {
			t.Errorf("Executable(%s): %v", path, err)
		}
	}
	if got, err := Executable("/bin/sh"); err != nil || got != "/bin/sh" {
		t.Errorf("got %q, %v", got, err)
	}
}
