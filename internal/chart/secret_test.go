package main

import (
	"strings"
	"testing"
)

// TestTheSecretIsEmpty: the chart makes the Secret that the controller fills, and puts nothing into it that Helm would
// bring back.
func TestTheSecretIsEmpty(t *testing.T) {
	objects, problems := render(t, "karpenter", "--set", "settings.clusterName=c,fullnameOverride=mine")
	if objects == nil {
		t.Fatal(problems)
	}
	secret := objects["Secret mine-cert"]
	if secret == nil || secret.Object["data"] != nil || secret.Object["stringData"] != nil {
		t.Errorf("the Secret is %v", secret)
	}
	for name, object := range objects {
		rules := jsonOf(t, object.Object["rules"])
		if strings.Contains(rules, "secrets") && strings.Contains(rules, "karpenter-cert") {
			t.Errorf("%s names another Secret: %s", name, rules)
		}
	}
}
