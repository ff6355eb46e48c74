package labdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func prepared(t *testing.T) Dir {
	t.Helper()
	dir := at(t, filepath.Join(t.TempDir(), "lab"))
	if err := dir.Prepare(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func at(t *testing.T, path string) Dir {
	t.Helper()
	dir, err := At(path)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPrepareIsRepeatableAndPrivate(t *testing.T) {
	dir := prepared(t)
	if err := dir.Prepare(); err != nil {
		t.Fatalf("the second time: %v", err)
	}
	if !dir.IsLab() {
		t.Error("a prepared directory is not a lab")
	}
	if err := dir.Write([]byte("secret"), "pki", "key"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir.Path("pki", "key"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("a written file has mode %v, want 0600", info.Mode().Perm())
	}
}

func TestPrepareRefusesForeignDirectories(t *testing.T) {
	parent := t.TempDir()
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{parent: "not a lab's", file: "is a file"} {
		err := at(t, path).Prepare()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--dir") {
			t.Errorf("%s: got %v, want an error about --dir with %q", path, err, want)
		}
	}
	if entries, _ := os.ReadDir(parent); len(entries) != 1 {
		t.Errorf("a refused directory now holds %d entries, want 1", len(entries))
	}
}

func TestLockIsExclusiveAndNamesItsHolder(t *testing.T) {
	dir := prepared(t)
	if pid, err := dir.Holder(); pid != 0 || err != nil {
		t.Fatalf("before: holder %d, %v", pid, err)
	}
	lock, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := dir.Holder(); pid != os.Getpid() || err != nil {
		t.Errorf("holder %d, %v; want this process", pid, err)
	}
	_, err = dir.Lock()
	var taken *TakenError
	if !errors.As(err, &taken) || taken.PID != os.Getpid() {
		t.Fatalf("second lock: %v, want a TakenError with this pid", err)
	}
	for _, want := range []string{fmt.Sprint(os.Getpid()), "tenon lab down --dir " + dir.Path()} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, err)
		}
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := dir.Lock()
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	_ = again.Release()
}

func TestRecordRoundTrip(t *testing.T) {
	dir := prepared(t)
	if _, ok, err := dir.LoadRecord(); ok || err != nil {
		t.Fatalf("before: %v, %v", ok, err)
	}
	want := Record{Supervisor: 7, Started: time.Unix(1000, 0).UTC(), Parts: []Part{{Name: "etcd", PID: 8, Address: "a",
		Health: "/h"}}}
	if err := dir.SaveRecord(want); err != nil {
		t.Fatal(err)
	}
	got, ok, err := dir.LoadRecord()
	if err != nil || !ok || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v %v %v, want %v", got, ok, err, want)
	}
	for range 2 {
		if err := dir.DropRecord(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFullDiskIsNamed(t *testing.T) {
	dir := at(t, "/x")
	err := dir.explain(fmt.Errorf("write: %w", syscall.ENOSPC))
	if !strings.Contains(err.Error(), "disk of --dir /x is full") {
		t.Errorf("got %q", err)
	}
	other := errors.New("other")
	if got := dir.explain(other); !errors.Is(got, other) {
		t.Errorf("got %q, want the error as it was", got)
	}
}
