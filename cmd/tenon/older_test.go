package main

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// logging is a manager that can do nothing but log.
type logging struct {
	manager.Manager
	log logr.Logger
}

func (l logging) GetLogger() logr.Logger { return l.log }

// TestOlderKindsAreSwitchedOff: nothing reads Provisioners, so nothing is asked of the manager.
func TestOlderKindsAreSwitchedOff(t *testing.T) {
	o, err := parse(t, "--disable-older-kinds")
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	mgr := logging{log: funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{})}
	if err := addOlderKinds(ground{mgr: mgr, o: o}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "--disable-older-kinds") {
		t.Errorf("the log is %q", log.String())
	}
}
