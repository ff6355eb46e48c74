package operator

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// onlyLog is a manager that can do nothing but log.
type onlyLog struct {
	manager.Manager
	log logr.Logger
}

func (l onlyLog) GetLogger() logr.Logger { return l.log }

// TestOlderKindsAreSwitchedOff: nothing reads Provisioners, so nothing is asked of the manager.
func TestOlderKindsAreSwitchedOff(t *testing.T) {
	o, err := parse(t, "--disable-older-kinds")
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	mgr := onlyLog{log: funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{})}
	if err := addOlderKinds(&deps{mgr: mgr, o: o}, o.cloud.chosen()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "--disable-older-kinds") {
		t.Errorf("the log is %q", log.String())
	}
}

// TestOlderKindsMeanNothingOnMostClouds: only those of this repository have a NodeClass that a Provisioner can be
// given.
func TestOlderKindsMeanNothingOnMostClouds(t *testing.T) {
	o, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	mgr := onlyLog{log: funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{})}
	if err := addOlderKinds(&deps{mgr: mgr, o: o}, &Cloud{Name: "other"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "left alone") || !strings.Contains(log.String(), `"provider"="other"`) {
		t.Errorf("the log is %q", log.String())
	}
}
