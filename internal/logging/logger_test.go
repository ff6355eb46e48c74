package logging

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/tenon-sh/tenon/internal/lab/labtest"
)

func TestLogLinesHaveEachKeyOnce(t *testing.T) {
	for _, level := range []string{"info", "debug"} {
		path := filepath.Join(t.TempDir(), "log")
		log, flush, err := New(Options{Level: level, Output: path, Errors: "stderr"})
		if err != nil {
			t.Fatal(err)
		}
		class := log.WithName("controller").WithValues("EC2NodeClass", map[string]string{"name": "default"},
			"commit", "none")
		class.Info("first", "EC2NodeClass", "default", "message", "m-1", "level", 3, "time", "now", "logger", "mine",
			"caller", "me")
		class.WithValues("a", 1, "a", 2).Error(errors.New("broken"), "second", "error", "mine", "a", 3)
		for range 1000 {
			log.Info("again and again")
		}
		flush()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		for _, line := range lines {
			if key, err := labtest.KeyTwice(line); key != "" || err != nil {
				t.Errorf("%q is there twice (%v) in %s", key, err, line)
			}
		}
		for i, words := range [][]string{{`"EC2NodeClass":"default"`, `"message":"first"`, `"message_":"m-1"`},
			{`"a":3`, `"message":"second"`}} {
			for _, word := range words {
				if !strings.Contains(lines[i], word) {
					t.Errorf("line %d lacks %s: %s", i, word, lines[i])
				}
			}
		}
		if len(lines) > 200 {
			t.Errorf("%d lines: repetitions are no longer left out", len(lines))
		}
	}
}

// TestLibrariesLogLikeUs: what client-go says is a line of JSON, too, with the same keys.
func TestLibrariesLogLikeUs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, flush, err := New(Options{Level: "info", Output: path, Errors: "stderr"})
	if err != nil {
		t.Fatal(err)
	}
	SetForLibraries(log)
	t.Cleanup(klog.ClearLogger)
	klog.Info("the lease is free")
	flush()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{`"level":"INFO"`, `"logger":"controller"`, `"message":"the lease is free"`, `"commit":`}
	for _, want := range wanted {
		if !strings.Contains(string(data), want) {
			t.Errorf("the line lacks %s: %s", want, data)
		}
	}
}
