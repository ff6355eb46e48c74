package main

import (
	"slices"
	"testing"
)

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
