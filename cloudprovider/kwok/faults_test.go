package kwok_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/kwok"
)

func annotated(key, text string) *kwokv1alpha1.KWOKNodeClass {
	return nodeClass(0, map[string]string{key: text})
}

func TestParseFaultsNamesTheMistake(t *testing.T) {
	for _, test := range []struct{ key, text, want string }{
		{kwok.FaultNoCapacity, "", "type:zone:capacity-type"},
		{kwok.FaultNoCapacity, "m5.large:a:spot:more", "type:zone:capacity-type"},
		{kwok.FaultNoCapacity, "m5.[large", "wildcards"},
		{kwok.FaultLaunchDelay, "5", "such as 5s"},
		{kwok.FaultLaunchDelay, "-5s", "such as 5s"},
		{kwok.FaultLaunchError, " ", "empty"},
		{kwok.FaultNeverRegister, "", "write true"},
		{kwok.FaultDisappear, "a[", "wildcards"},
		{kwok.FaultDrift, "two words", "CamelCase"},
		{kwok.FaultNotReady, "", "empty"},
		{"tenon.sh/fault-typo", "true", "no such fault"},
	} {
		_, err := kwok.ParseFaults(map[string]string{test.key: test.text})
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.key) {
			t.Errorf("%s=%q: error %v, want the annotation's name and %q", test.key, test.text, err, test.want)
		}
	}
	if _, err := kwok.ParseFaults(map[string]string{"example.com/fault": "x",
		kwok.FaultNeverRegister: "false"}); err != nil {
		t.Errorf("annotations that are fine: %v", err)
	}
}

func TestNoCapacity(t *testing.T) {
	m5 := in(corev1.LabelInstanceTypeStable, "m5.large")
	for _, test := range []struct {
		text string
		want string // what is launched instead: zone:capacity-type, or nothing
	}{
		{"m5.large:us-west-2c:spot", "us-west-2d:spot"},
		{"m5.large:*:spot", "us-west-2a:on-demand"},
		{"*:us-west-2?:spot", "us-west-2a:on-demand"},
		{"c5.large, m5.large:*:on-demand", "us-west-2c:spot"},
		{"m5.large", ""},
	} {
		p := provider(t, newAPI(annotated(kwok.FaultNoCapacity, test.text)))
		instance, err := p.Create(t.Context(), claim("c", m5))
		if test.want == "" {
			none, ok := errors.AsType[*cloudprovider.NoCapacityError](err)
			if !ok || len(none.Exhausted) != 8 {
				t.Errorf("%s: error %v, want NoCapacity of 8 offerings", test.text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got := instance.Labels[corev1.LabelTopologyZone] + ":" +
			instance.Labels[v1.CapacityTypeLabelKey]; got != test.want {
			t.Errorf("%s: launched %s, want %s", test.text, got, test.want)
		}
	}
}

func TestSlowLaunch(t *testing.T) {
	p := provider(t, newAPI(annotated(kwok.FaultLaunchDelay, "100ms")))
	begin := time.Now()
	create(t, p, claim("c"))
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("the launch took %s, want 100ms", took)
	}
	slow := provider(t, newAPI(annotated(kwok.FaultLaunchDelay, "1h")))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := slow.Create(ctx, claim("c")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the end of the context", err)
	}
}

func TestFailedLaunch(t *testing.T) {
	p := provider(t, newAPI(annotated(kwok.FaultLaunchError, "the datacenter is on fire")))
	_, err := p.Create(t.Context(), claim("c"))
	if err == nil || !strings.Contains(err.Error(), "the datacenter is on fire") {
		t.Errorf("error %v", err)
	}
	if all, err := p.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("a failed launch left %v, %v", all, err)
	}
}

func TestNeverRegister(t *testing.T) {
	a := newAPI(annotated(kwok.FaultNeverRegister, "dud-*"))
	p := provider(t, a)
	stop := start(t, p)
	dud := create(t, p, claim("dud-1"))
	create(t, p, claim("good-1"))
	waitForNode(t, a, "good-1")
	stop()
	// The fault outlives the controller, and even the annotation.
	again := provider(t, newAPIWith(t, a, 0))
	start(t, again)
	create(t, again, claim("good-2"))
	waitForNode(t, a, "good-2")
	if getNode(t, a, "dud-1") != nil {
		t.Error("dud-1 joined")
	}
	if _, err := again.Get(t.Context(), dud.ProviderID); err != nil {
		t.Errorf("an instance that never joins must run: %v", err)
	}
}

func TestFaultsFromTheProgram(t *testing.T) {
	faults := &kwok.Faults{}
	a := newAPI(nodeClass(0, nil))
	p := provider(t, a, func(o *kwok.Options) { o.Faults = faults })
	faults.Set(kwok.FaultSet{LaunchError: "not today"})
	if _, err := p.Create(t.Context(), claim("c")); err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("error %v", err)
	}
	faults.Set(kwok.FaultSet{})
	create(t, p, claim("c"))
}

func TestDrift(t *testing.T) {
	faults := &kwok.Faults{}
	p := provider(t, newAPI(nodeClass(0, nil)), func(o *kwok.Options) { o.Faults = faults })
	create(t, p, claim("c"))
	faults.Set(kwok.FaultSet{Drift: "ImageDrift"})
	if got, err := p.Drifted(t.Context(), claim("c")); err != nil || got != "ImageDrift" {
		t.Errorf("Drifted = %q, %v", got, err)
	}
	create(t, p, claim("d"))
	if got, err := p.Drifted(t.Context(), claim("d")); err != nil || got != "" {
		t.Errorf("Drifted of what was launched since = %q, %v; want no drift", got, err)
	}
	faults.Set(kwok.FaultSet{Drift: "OtherDrift"})
	if got, err := p.Drifted(t.Context(), claim("d")); err != nil || got != "OtherDrift" {
		t.Errorf("Drifted after another change = %q, %v", got, err)
	}
	missing := claim("c")
	missing.Spec.NodeClassRef.Name = "other"
	if got, err := p.Drifted(t.Context(), missing); err != nil || got != "" {
		t.Errorf("Drifted without a NodeClass = %q, %v; want no drift", got, err)
	}
}

func reconcile(t *testing.T, a *api, p *kwok.Provider) *kwokv1alpha1.KWOKNodeClass {
	t.Helper()
	r := &kwok.NodeClassReconciler{Client: a, Provider: p}
	key := types.NamespacedName{Name: "default"}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	class := &kwokv1alpha1.KWOKNodeClass{}
	if err := a.Get(t.Context(), key, class); err != nil {
		t.Fatal(err)
	}
	return class
}

func TestReadyCondition(t *testing.T) {
	negative := nodeClass(-time.Second, nil)
	theirs := nodeClass(0, nil)
	theirs.Status.Conditions[0].Status, theirs.Status.Conditions[0].Reason = "False", "Maintenance"
	fresh := nodeClass(0, nil)
	fresh.Status.Conditions = nil
	for _, test := range []struct {
		name            string
		class           *kwokv1alpha1.KWOKNodeClass
		status          string
		reason, message string
	}{
		{"new", fresh, "True", kwok.ReasonReady, ""},
		{"good", nodeClass(time.Minute, nil), "True", kwok.ReasonReady, ""},
		{"negative delay", negative, "False", kwok.ReasonInvalidSpec, "spec.nodeRegistrationDelay is -1s"},
		{"unreadable fault", annotated(kwok.FaultLaunchDelay, "soon"), "False", kwok.ReasonInvalidFault,
			kwok.FaultLaunchDelay},
		{"not ready by fault", annotated(kwok.FaultNotReady, "no subnets"), "False", kwok.ReasonFaultNotReady,
			"no subnets"},
		{"not ready by somebody else", theirs, "False", "Maintenance", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.class.Generation = 3
			a := newAPI(test.class)
			class := reconcile(t, a, provider(t, a))
			ready := meta.FindStatusCondition(class.Status.Conditions, v1.ConditionTypeReady)
			if ready == nil || string(ready.Status) != test.status || ready.Reason != test.reason ||
				!strings.Contains(ready.Message, test.message) {
				t.Fatalf("Ready is %+v, want %s, %s, %q", ready, test.status, test.reason, test.message)
			}
			if test.reason != "Maintenance" && ready.ObservedGeneration != 3 {
				t.Errorf("observedGeneration %d, want 3", ready.ObservedGeneration)
			}
		})
	}
}

func TestReadyAgainOnceTheFaultIsFixed(t *testing.T) {
	a := newAPI(annotated(kwok.FaultLaunchDelay, "soon"))
	p := provider(t, a)
	class := reconcile(t, a, p)
	class.Annotations = nil
	if err := a.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	class = reconcile(t, a, p)
	if !meta.IsStatusConditionTrue(class.Status.Conditions, v1.ConditionTypeReady) {
		t.Errorf("conditions %+v", class.Status.Conditions)
	}
}

func TestDisappear(t *testing.T) {
	a := newAPI(nodeClass(0, nil))
	p := provider(t, a)
	start(t, p)
	gone, spared := create(t, p, claim("gone-1")), create(t, p, claim("spared-1"))
	waitForNode(t, a, "gone-1")
	waitForNode(t, a, "spared-1")
	class := &kwokv1alpha1.KWOKNodeClass{}
	if err := a.Get(t.Context(), types.NamespacedName{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	class.Annotations = map[string]string{kwok.FaultDisappear: "gone-*", "example.com/kept": "yes"}
	if err := a.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	class = reconcile(t, a, p)
	if _, err := p.Get(t.Context(), gone.ProviderID); !cloudprovider.IsNotFound(err) {
		t.Errorf("gone-1 is still there: %v", err)
	}
	if n := getNode(t, a, "gone-1"); n == nil || n.Annotations["kwok.x-k8s.io/node"] != "" ||
		n.Labels["kwok.x-k8s.io/node"] != "" {
		t.Errorf("the node of a dead machine must stay, without heartbeats: %+v", n)
	}
	if _, err := p.Get(t.Context(), spared.ProviderID); err != nil {
		t.Errorf("spared-1 disappeared, too: %v", err)
	}
	if _, ok := class.Annotations[kwok.FaultDisappear]; ok || class.Annotations["example.com/kept"] != "yes" {
		t.Errorf("annotations %v, want only the fault removed", class.Annotations)
	}
}
