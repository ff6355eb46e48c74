package nodeclass_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
)

// The metrics of classes: what they are, and what became of them.
func TestMetrics(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	registry := prometheus.NewRegistry()
	var err error
	if w.options.Metrics, err = nodeclass.NewMetrics(registry, w.kube, w.clock.Now); err != nil {
		t.Fatal(err)
	}
	w.keeper = nodeclass.New(w.options)
	w.Faults.Deny("ec2:DescribeSubnets")
	_, _, _ = w.look()
	w.Faults.Clear()
	w.clock.pass(time.Minute)
	class := w.ready()
	if err := w.kube.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	scrape := func() string {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, f := range families {
			for _, m := range f.GetMetric() {
				// it has one space or two, as it likes
				fmt.Fprintln(&out, f.GetName(), strings.Join(strings.Fields(m.String()), " "))
			}
		}
		return out.String()
	}
	for _, want := range []string{
		"operator_ec2nodeclass_status_condition_count", "operator_ec2nodeclass_status_condition_current_status_seconds",
		"operator_ec2nodeclass_termination_current_time_seconds",
		"operator_ec2nodeclass_status_condition_transitions_total",
		"operator_ec2nodeclass_status_condition_transition_seconds",
		"operator_status_condition_count", "operator_status_condition_current_status_seconds",
		"operator_termination_current_time_seconds",
		"operator_status_condition_transitions_total", "operator_status_condition_transition_seconds",
	} {
		if !strings.Contains(scrape(), want+" ") {
			t.Errorf("no %s in\n%s", want, scrape())
		}
	}
	if _, _, err := w.look(); err != nil {
		t.Fatal(err)
	}
	if text := scrape(); strings.Contains(text, "status_condition_count") || !strings.Contains(text,
		"operator_ec2nodeclass_termination_duration_seconds histogram:{sample_count:1") ||
		!strings.Contains(text, `operator_termination_duration_seconds label:{name:"group" `+
			`value:"karpenter.k8s.aws"} label:{name:"kind" value:"EC2NodeClass"} histogram:{sample_count:1`) {
		t.Errorf("once it is gone there is\n%s", text)
	}
}
