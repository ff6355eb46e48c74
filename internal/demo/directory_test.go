package demo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDirectoryIsTakenOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo")
	first, err := openDirectory(t.Context(), path, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	_, err = openDirectory(t.Context(), path, t.Output())
	taken, ok := errors.AsType[*takenError](err)
	if !ok || taken.pid != os.Getpid() || !strings.Contains(err.Error(), "demo --down") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line that names this process and the way out", err)
	}
	if err := first.letGo(); err != nil {
		t.Fatal(err)
	}
	again, err := openDirectory(t.Context(), path, t.Output())
	if err != nil {
		t.Fatalf("after the lock was given back: %v", err)
	}
	if err := again.remove(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestLeftoversOfACrashDontBlock(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{lockName, controllerName} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("4711\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := openDirectory(t.Context(), path, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.controllerLog()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old log is still there: %v", err)
	}
	if err := d.letGo(); err != nil {
		t.Fatal(err)
	}
}

func TestOtherPeoplesDirectoriesAreRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	otherLab := t.TempDir()
	if err := os.Mkdir(filepath.Join(otherLab, labName), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(full, "thesis.txt")
	for path, want := range map[string]string{full: "thesis.txt", otherLab: "not a demo's", file: "is a file"} {
		_, err := openDirectory(t.Context(), path, t.Output())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--dir") {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file was touched: %v", err)
	}
}

func TestRunRefusesSillyNumbers(t *testing.T) {
	for _, pods := range []int{-1, 0, MaxPods + 1} {
		err := Run(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "demo"), Pods: pods, Out: t.Output()})
		if err == nil || !strings.Contains(err.Error(), "--pods") {
			t.Errorf("%d pods: error %v", pods, err)
		}
	}
}
