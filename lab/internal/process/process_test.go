package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// This test executable plays the parts too, chosen by its first argument as in
// the lab itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "obedient":
			playObedient()
		case "stubborn":
			playStubborn(os.Args[2])
		case "failing":
			fmt.Println("Error: listen tcp 127.0.0.1:1: bind: address already in use")
			os.Exit(3)
		case "supervisor":
			playSupervisor(os.Args[2])
		}
	}
	os.Exit(m.Run())
}

func playObedient() {
	FollowLifeline()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	os.Exit(0)
}

// playStubborn ignores SIGTERM and holds a lock for as long as it lives.
func playStubborn(lock string) {
	FollowLifeline()
	signal.Ignore(syscall.SIGTERM)
	file, err := os.OpenFile(lock, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		os.Exit(4)
	}
	fmt.Println("locked")
	select {}
}

func playSupervisor(folder string) {
	runner, err := NewRunner(os.Args[0])
	if err != nil {
		os.Exit(5)
	}
	if _, err := runner.Start(Spec{Name: "stubborn", Args: []string{filepath.Join(folder, "lock")},
		Log: filepath.Join(folder, "log")}); err != nil {
		os.Exit(6)
	}
	fmt.Println("started")
	select {}
}

func newRunner(t *testing.T) *Runner {
	t.Helper()
	runner, err := NewRunner(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runner.Close() })
	return runner
}

func start(t *testing.T, runner *Runner, name string, args ...string) *Process {
	t.Helper()
	p, err := runner.Start(Spec{Name: name, Args: args, Log: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStopAsksThenKills(t *testing.T) {
	runner := newRunner(t)
	lock := filepath.Join(t.TempDir(), "lock")
	obedient, stubborn := start(t, runner, "obedient"), start(t, runner, "stubborn", lock)
	eventually(t, "the stubborn part to be ready", func() bool { return contains(stubborn.log, "locked") })
	begin := time.Now()
	Stop(300*time.Millisecond, obedient, stubborn)
	if took := time.Since(begin); took < 300*time.Millisecond || took > 10*time.Second {
		t.Errorf("took %s, want the grace period and little more", took)
	}
	for _, p := range []*Process{obedient, stubborn} {
		select {
		case <-p.Done():
		default:
			t.Errorf("%s still runs", p.Name())
		}
	}
	// A second time must neither hang nor fail.
	Stop(time.Second, obedient, stubborn)
}

func TestFailureNamesPartAndCause(t *testing.T) {
	p := start(t, newRunner(t), "failing")
	<-p.Done()
	var failure *Failure
	if !errors.As(p.Failure(), &failure) || !failure.PortTaken() || failure.FullDisk() {
		t.Fatalf("got %v, want a taken port", p.Failure())
	}
	for _, want := range []string{"failing ended (exit status 3)", "address already in use"} {
		if !strings.Contains(failure.Error(), want) {
			t.Errorf("no %q in %q", want, failure)
		}
	}
}

func TestKilledPartBlamesNoLogLine(t *testing.T) {
	p := start(t, newRunner(t), "stubborn", filepath.Join(t.TempDir(), "lock"))
	eventually(t, "the part to log", func() bool { return contains(p.log, "locked") })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if text := p.Failure().Error(); !strings.Contains(text, "signal: killed") || strings.Contains(text, "locked") {
		t.Errorf("got %q", text)
	}
}

func TestPartsEndWithAKilledSupervisor(t *testing.T) {
	folder := t.TempDir()
	supervisor := exec.Command(os.Args[0], "supervisor", folder)
	output, err := supervisor.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("the supervisor said %q, %v", line, err)
	}
	eventually(t, "the part to hold its lock", func() bool { return contains(filepath.Join(folder, "log"), "locked") })
	if free(t, filepath.Join(folder, "lock")) {
		t.Fatal("the part does not hold its lock")
	}
	if err := supervisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = supervisor.Wait()
	eventually(t, "the part to end", func() bool { return free(t, filepath.Join(folder, "lock")) })
}

// free tells whether nobody holds the lock.
func free(t *testing.T, path string) bool {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

func contains(path, text string) bool {
	content, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(content), text)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}
