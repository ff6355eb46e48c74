package onlab

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

// grant is a role of the release: a ClusterRole or a Role.
type grant struct {
	name   string
	object client.Object
	rules  *[]rbacv1.PolicyRule
}

// grants are the roles that the controller's account has.
func (w *world) grants() []grant {
	w.Helper()
	var out []grant
	wide, narrow := &rbacv1.ClusterRoleList{}, &rbacv1.RoleList{}
	for _, list := range []client.ObjectList{wide, narrow} {
		if err := w.c.List(w.Context(), list, client.MatchingLabels{"app.kubernetes.io/instance": release}); err != nil {
			w.Fatal(err)
		}
	}
	for i := range wide.Items {
		if role := &wide.Items[i]; role.Name != "karpenter-view" && role.Name != "karpenter-admin" { // those are for people
			out = append(out, grant{"ClusterRole " + role.Name, role, &role.Rules})
		}
	}
	for i := range narrow.Items {
		role := &narrow.Items[i]
		out = append(out, grant{"Role " + role.Namespace + "/" + role.Name, role, &role.Rules})
	}
	return out
}

// TestEachRuleIsNeeded takes one rule at a time from the controller's account. Each time the controller says what it may not do any more.
func TestEachRuleIsNeeded(t *testing.T) {
	w := newWorld(t)
	w.runHelm("install", release, w.helm.Chart("karpenter"), "--namespace", release, "--set", "settings.cloudProvider=kwok,replicas=1", "--wait", "--timeout", "2m")
	w.apply("examples/kwok/nodepool.yaml")
	w.apply("examples/kwok/inflate.yaml")
	w.makeHard()
	stop := w.keepBusy()
	defer stop()
	tried := 0
	for _, role := range w.grants() {
		all := slices.Clone(*role.rules)
		for i, rule := range all {
			if why := elsewhere(rule); why != "" {
				t.Logf("         %s without %v %v: not tried; %s", role.name, rule.Verbs, rule.Resources, why)
				continue
			}
			tried++
			*role.rules = slices.Delete(slices.Clone(all), i, i+1)
			w.update(role)
			began := time.Now()
			said := w.complaint(rule)
			if said == "" {
				t.Errorf("%s: without the rule %v nothing is missed within %s", role.name, rule, ruleTime)
			}
			t.Logf("%5.1f s  %s without %v %v: %s", time.Since(began).Seconds(), role.name, rule.Verbs, rule.Resources, said)
			*role.rules = all
			w.update(role)
		}
	}
	if tried < 15 {
		t.Errorf("only %d rules were found", tried)
	}
}

// elsewhere says of rules that the log of a running controller says nothing about who tries them.
func elsewhere(rule rbacv1.PolicyRule) string {
	switch {
	case slices.Equal(rule.Resources, []string{"nodepools"}) && slices.Equal(rule.Verbs, []string{"create"}):
		return "a Provisioner tells it in its status; the end-to-end tests of Provisioners run with these roles"
	case slices.Equal(rule.Resources, []string{"customresourcedefinitions/status"}):
		return "it is asked for once, if an older version is stored; the tests of the webhook do it"
	}
	return ""
}

// update writes a role; it is read again first, because Helm's labels stay as they are.
func (w *world) update(role grant) {
	w.Helper()
	role.object.SetResourceVersion("")
	if err := w.c.Update(w.Context(), role.object); err != nil {
		w.Fatalf("changing %s: %v", role.name, err)
	}
}

// makeHard has nodes take a while to be ready, so that pods are told theirs before, and has pods whose eviction a budget forbids.
func (w *world) makeHard() {
	w.Helper()
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	patch := `{"spec":{"template":{"metadata":{"labels":{"lab.tenon.sh/boot-seconds":"2"}},"spec":{"terminationGracePeriod":"2s"}}}}`
	if err := w.c.Patch(w.Context(), pool, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		w.Fatal(err)
	}
	none := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "inflate"},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "inflate"}}}}
	if err := w.c.Create(w.Context(), budget); err != nil {
		w.Fatal(err)
	}
	// Others may be evicted. Their size is another, so that it matters which pod goes to which node.
	other := &appsv1.Deployment{}
	if err := w.c.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "inflate"}, other); err != nil {
		w.Fatal(err)
	}
	other.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "larger"}
	other.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "larger"}}
	other.Spec.Template.Labels = other.Spec.Selector.MatchLabels
	other.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	if err := w.c.Create(w.Context(), other); err != nil {
		w.Fatal(err)
	}
}

// keepBusy gives the controller something to do all the time: pods come, nodes are deleted under them, pods go. What fails is tried in the
// next round: the controller is crippled on purpose.
func (w *world) keepBusy() (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for round := 0; ctx.Err() == nil; round++ {
			switch round % 3 {
			case 0:
				w.want(ctx, 3+round%5)
				w.spoilWebhook(ctx)
				_ = w.c.Create(ctx, older())                                                                   // a NodePool and a KWOKNodeClass are made of it
				_ = w.c.Create(ctx, &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}}) // its status is to be written
			case 1:
				_ = w.c.DeleteAllOf(ctx, &v1.NodeClaim{})
			case 2:
				w.want(ctx, 0)
				_ = w.c.Delete(ctx, older())
				_ = w.c.Delete(ctx, &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
			}
			w.settle(ctx)
		}
	})
	return func() { cancel(); busy.Wait() }
}

// older is a Provisioner, of which a NodePool is made.
func older() *v1alpha5.Provisioner {
	return &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "older"}, Spec: v1alpha5.ProvisionerSpec{
		Provider: &apiextensionsv1.JSON{Raw: []byte("{}")}, Weight: new(int32(1)),
	}}
}

// spoilWebhook takes away what the controller keeps for its webhook: the certificate, and where a definition says that it is.
func (w *world) spoilWebhook(ctx context.Context) {
	_ = w.core.CoreV1().Secrets(release).Delete(ctx, "karpenter-cert", metav1.DeleteOptions{})
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "nodepools.karpenter.sh"}}
	_ = w.c.Patch(ctx, definition, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)))
}

// want has so many pods of both kinds wanted.
func (w *world) want(ctx context.Context, replicas int) {
	for _, name := range []string{"inflate", "larger"} {
		_, _ = w.core.AppsV1().Deployments("default").Patch(ctx, name, "application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	}
}

// roundTime bounds a round: a crippled controller may never get there.
const roundTime = 12 * time.Second

// settle waits until both kinds have the pods that are wanted and no node is on its way out, or the round is over.
func (w *world) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		list, err := w.core.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
		if err == nil && !slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool {
			return d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas
		}) && !w.leaving(ctx) {
			return
		}
	}
}

// leaving reports whether a NodeClaim is being deleted.
func (w *world) leaving(ctx context.Context) bool {
	list := &v1.NodeClaimList{}
	err := w.c.List(ctx, list)
	return err != nil || slices.ContainsFunc(list.Items, func(c v1.NodeClaim) bool { return c.DeletionTimestamp != nil })
}

// ruleTime bounds how long one rule is tried.
const ruleTime = 90 * time.Second

// refusal is how the API server names what somebody may not do.
var refusal = regexp.MustCompile(`cannot (\w+) resource \\?"([a-z/]+)\\?" in API group`)

// complaint starts the controller anew and waits until it is refused something that the rule allowed. It returns those words.
func (w *world) complaint(rule rbacv1.PolicyRule) string {
	w.Helper()
	before := map[string]bool{}
	pods := w.controllers()
	for i := range pods {
		before[pods[i].Name] = true
		now := int64(1)
		_ = w.core.CoreV1().Pods(release).Delete(w.Context(), pods[i].Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(ruleTime); time.Now().Before(end); <-ticker.C {
		for _, pod := range w.controllers() {
			if before[pod.Name] {
				continue
			}
			for _, log := range []string{w.logOf(pod.Name), w.previousLogOf(pod.Name)} {
				for _, found := range refusal.FindAllStringSubmatch(log, -1) {
					if slices.Contains(rule.Verbs, found[1]) && slices.Contains(rule.Resources, found[2]) {
						return strings.ReplaceAll(found[0], `\`, "")
					}
				}
			}
		}
	}
	return ""
}

// previousLogOf is what the process before said in a pod whose process has ended.
func (w *world) previousLogOf(pod string) string {
	raw, err := w.core.CoreV1().Pods(release).GetLogs(pod, &corev1.PodLogOptions{Previous: true}).DoRaw(w.Context())
	if err != nil {
		return ""
	}
	return string(raw)
}
