package labaws_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/control"
	"github.com/tenon-sh/tenon/internal/lab/labaws"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// serve runs an account for the lab in the background, as "tenon ec2sim serve" does.
func serve(t *testing.T, dir string) (record labaws.Record, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan labaws.Record, 1), make(chan error, 1)
	go func() {
		ended <- labaws.Serve(ctx, dir, labaws.Options{Cluster: "lab"}, func(r labaws.Record) { ready <- r })
	}()
	select {
	case record = <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("it ended before it was ready: %v", err)
	}
	return record, func() error {
		cancel()
		return <-ended
	}
}

func TestAnAccountBesideALab(t *testing.T) {
	l := labtest.New(t)
	dir := filepath.Dir(l.Kubeconfig())
	if _, ok, err := labaws.Running(dir); ok || err != nil {
		t.Fatalf("before it was started: %v, %v", ok, err)
	}
	record, stop := serve(t, dir)
	found, ok, err := labaws.Running(dir)
	if err != nil || !ok || found.URL != record.URL || found.PID != os.Getpid() {
		t.Errorf("found %+v, %v, %v; want %+v", found, ok, err, record)
	}
	if machines, err := (control.Client{URL: found.URL}).Machines(t.Context()); err != nil || len(machines) != 0 {
		t.Errorf("machines %v, %v", machines, err)
	}
	// The file can be read by a shell.
	out, err := exec.CommandContext(t.Context(), "sh", "-c", ". "+labaws.EnvPath(dir)+"; echo $AWS_ENDPOINT_URL "+
		"$CLUSTER_NAME $INTERRUPTION_QUEUE $KUBECONFIG $TENON_LAB_DIR").Output()
	if want := record.URL + " lab lab " + l.Kubeconfig() + " " + dir; err != nil ||
		strings.TrimSpace(string(out)) != want {
		t.Errorf("the variables are %q, %v; want %q", out, err, want)
	}
	err = labaws.Serve(t.Context(), dir, labaws.Options{}, func(labaws.Record) { t.Error("a second account runs") })
	if err == nil || !strings.Contains(err.Error(), "already runs") {
		t.Errorf("a second account: %v", err)
	}
	if err := stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, ok, err := labaws.Running(dir); ok || err != nil {
		t.Errorf("after it ended: %v, %v", ok, err)
	}
	if _, err := os.Stat(labaws.EnvPath(dir)); !os.IsNotExist(err) {
		t.Errorf("the variables of an account that has ended are still there: %v", err)
	}
	if err := labaws.Down(t.Context(), dir); err != nil {
		t.Errorf("ending none: %v", err)
	}
}

func TestWithoutALab(t *testing.T) {
	dir := t.TempDir()
	err := labaws.Serve(t.Context(), dir, labaws.Options{}, func(labaws.Record) { t.Error("it runs") })
	if err == nil || !strings.Contains(err.Error(), "tenon lab up --dir "+dir) {
		t.Errorf("%v, want the way to start a lab", err)
	}
}

// An account without a lab has machines that run and join nothing.
func TestAnAccountAlone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan labaws.Record, 1), make(chan error, 1)
	go func() {
		ended <- labaws.Alone(ctx, labaws.Options{Cluster: "mine"}, 0, func(r labaws.Record) { ready <- r })
	}()
	r := <-ready
	if machines, err := (control.Client{URL: r.URL}).Machines(t.Context()); err != nil || len(machines) != 0 {
		t.Errorf("machines %v, %v", machines, err)
	}
	if !slices.Contains(r.Env, "AWS_ENDPOINT_URL="+r.URL) || !slices.Contains(r.Env, "CLUSTER_NAME=mine") {
		t.Errorf("the variables are %v", r.Env)
	}
	port, err := strconv.Atoi(r.URL[strings.LastIndexByte(r.URL, ':')+1:])
	if err != nil {
		t.Fatal(err)
	}
	if err := labaws.Alone(t.Context(), labaws.Options{}, port, func(labaws.Record) {
		t.Error("two answer at one port")
	}); err == nil {
		t.Error("a port that is taken was given to a second one")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestExportsAreQuoted(t *testing.T) {
	if got, want := labaws.Exports([]string{"A=1", "B=it's $b"}),
		"export A='1'\nexport B='it'\\''s $b'\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
