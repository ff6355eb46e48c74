package operator

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/version"
)

// TestFlagsOfKarpentersDeployment: they come without a command, and Karpenter takes one dash for two.
func TestFlagsOfKarpentersDeployment(t *testing.T) {
	controller := NewCommand(twoClouds()...)
	given := []string{"-log-level=debug", "--metrics-port", "9000", "-memory-limit", "-1", "-h", "---log-level", "-l"}
	if got := Arguments(controller, given); !slices.Equal(got, given) {
		t.Errorf("outside of a pod: %v", got)
	}
	want := []string{"controller", "--log-level=debug", "--metrics-port", "9000", "--memory-limit", "-1", "-h",
		"---log-level", "-l"}
	if got := Arguments(controller, append([]string{"controller"}, given...)); !slices.Equal(got, want) {
		t.Errorf("with the command: %v", got)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	if got := Arguments(controller, given); !slices.Equal(got, want) {
		t.Errorf("in a pod: %v", got)
	}
	for _, other := range [][]string{{"--help"}, {"-v"}, {"convert", "-f", "-"}, {"lab", "-log-level"}} {
		if got := Arguments(controller, other); !slices.Equal(got, other) {
			t.Errorf("in a pod, %v became %v", other, got)
		}
	}
}

// TestNoArgumentsInAPod: Karpenter's Deployment gives none, and gets the controller.
func TestNoArgumentsInAPod(t *testing.T) {
	controller := NewCommand(twoClouds()...)
	if got := Arguments(controller, nil); len(got) != 0 {
		t.Errorf("outside of a pod: %v", got)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	if got := Arguments(controller, nil); !slices.Equal(got, []string{"controller"}) {
		t.Errorf("in a pod: %v", got)
	}
	if got := Arguments(controller, []string{"--version"}); !slices.Equal(got, []string{"--version"}) {
		t.Errorf("in a pod, with an argument: %v", got)
	}
}

// TestAProgramOfItsOwn: what runs nothing but the controller takes its flags everywhere, with its command and without.
func TestAProgramOfItsOwn(t *testing.T) {
	controller := NewCommand(twoClouds()...)
	for _, c := range []struct{ given, want []string }{
		{nil, []string{"controller"}},
		{[]string{"-log-level=debug", "--metrics-port", "0"}, []string{"controller", "--log-level=debug",
			"--metrics-port", "0"}},
		{[]string{"controller", "-log-level=debug"}, []string{"controller", "--log-level=debug"}},
		{[]string{"version", "-o", "json"}, []string{"version", "-o", "json"}},
		{[]string{"--version"}, []string{"--version"}},
		{[]string{"-h"}, []string{"-h"}},
	} {
		if got := alone(controller, c.given); !slices.Equal(got, c.want) {
			t.Errorf("%v became %v, want %v", c.given, got, c.want)
		}
	}
}

func TestTheProgramSaysItsVersion(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--version", "mine version " + version.Read().String() + "\n"},
		{"version", "Client Version: " + version.Read().String() + "\n"},
	} {
		root, _ := newProgram("mine", twoClouds()...)
		var out strings.Builder
		root.SetOut(&out)
		root.SetArgs([]string{c.args})
		if err := root.Execute(); err != nil || out.String() != c.want {
			t.Errorf("%s: %q, %v, want %q", c.args, out.String(), err, c.want)
		}
	}
}
