package main

import (
	"slices"
	"testing"
)

// TestFlagsOfKarpentersDeployment: they come without a command, and Karpenter takes one dash for two.
func TestFlagsOfKarpentersDeployment(t *testing.T) {
	given := []string{"-log-level=debug", "--metrics-port", "9000", "-memory-limit", "-1", "-h", "---log-level", "-l"}
	if got := arguments(given); !slices.Equal(got, given) {
		t.Errorf("outside of a pod: %v", got)
	}
	want := []string{"controller", "--log-level=debug", "--metrics-port", "9000", "--memory-limit", "-1", "-h",
		"---log-level", "-l"}
	if got := arguments(append([]string{"controller"}, given...)); !slices.Equal(got, want) {
		t.Errorf("with the command: %v", got)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	if got := arguments(given); !slices.Equal(got, want) {
		t.Errorf("in a pod: %v", got)
	}
	for _, other := range [][]string{{"--help"}, {"-v"}, {"convert", "-f", "-"}, {"lab", "-log-level"}} {
		if got := arguments(other); !slices.Equal(got, other) {
			t.Errorf("in a pod, %v became %v", other, got)
		}
	}
}

// TestNoArgumentsInAPod: Karpenter's Deployment gives none, and gets the controller.
func TestNoArgumentsInAPod(t *testing.T) {
	if got := arguments(nil); len(got) != 0 {
		t.Errorf("outside of a pod: %v", got)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	if got := arguments(nil); !slices.Equal(got, []string{"controller"}) {
		t.Errorf("in a pod: %v", got)
	}
	if got := arguments([]string{"--version"}); !slices.Equal(got, []string{"--version"}) {
		t.Errorf("in a pod, with an argument: %v", got)
	}
}
