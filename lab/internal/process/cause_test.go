package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCause(t *testing.T) {
	for name, c := range map[string]struct{ log, want string }{
		"klog": {"I0101 00:00:00.0 1 a.go:1] fine\nE0101 00:00:00.0 1 run.go:72] \"command failed\" err=\"no " +
			"luck\"\nI0101 bye\n", `"command failed" err="no luck"`},
		"zap": {`{"level":"fatal","msg":"listening failed","error":"address already in use"}` + "\n" +
			`{"level":"warn","msg":"closing"}` + "\n", "listening failed: address already in use"},
		"slog":         {`{"level":"ERROR","msg":"failed","err":"reason"}` + "\n", "failed: reason"},
		"plain":        {"one\ntwo\n\n", "two"},
		"cobra":        {"Error: unknown flag\nUsage:\n", "Error: unknown flag"},
		"panic":        {"panic: boom\n\ngoroutine 1\n", "panic: boom"},
		"empty":        {"", ""},
		"long is kept": {strings.Repeat("y", tailBytes) + "\nlast", "last"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Cause(path); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := Cause(filepath.Join(t.TempDir(), "none")); got != "" {
		t.Errorf("no log: got %q", got)
	}
}

func TestCauseIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 10*causeBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := len(Cause(path)); got > causeBytes+len("…") {
		t.Errorf("%d bytes", got)
	}
}
