package onlab

import (
	"context"
	"fmt"
	"reflect"
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

// TestEachRuleIsNeeded takes rules from the controller's account, and gives each back once the controller says that it
// may not do what the rule allowed. First it takes those that the start needs, then, from a controller that runs, those
// by which it only changes something. A rule of which nothing is said is not needed.
func TestEachRuleIsNeeded(t *testing.T) {
	w := newWorld(t)
	w.makeForeignSecret()
	w.runHelm("install", release, w.helm.Chart("karpenter"), "--namespace", release, "--set", "settings.cloudProvider=kwok,replicas=1", "--wait", "--timeout", "2m")
	w.apply("examples/kwok/nodepool.yaml")
	w.apply("examples/kwok/inflate.yaml")
	workloads := w.makeHard()
	grants := w.grants()
	checkNoneTwice(t, grants)
	var start, work []*rule
	for _, role := range grants {
		for _, r := range *role.rules {
			one := &rule{PolicyRule: r, role: role}
			if why := elsewhere(r); why != "" {
				t.Logf("         %s: not tried; %s", one, why)
			} else if slices.ContainsFunc(r.Verbs, isRead) || slices.Contains(r.Resources, "leases") {
				start = append(start, one)
			} else {
				work = append(work, one)
			}
		}
	}
	if len(start) < 10 || len(work) < 10 {
		t.Errorf("only %d rules are for the start, and %d for work", len(start), len(work))
	}
	stop := w.keepBusy(workloads)
	defer stop()
	w.take(grants, start)
	w.awaitComplaints(grants, start, w.restart())
	w.take(grants, work)
	w.awaitComplaints(grants, work, nil)
}

// rule is one that the controller's account has in a role.
type rule struct {
	rbacv1.PolicyRule
	role grant
	// taken says that the account does not have it.
	taken bool
}

func (r *rule) String() string {
	return fmt.Sprintf("%s without %v %v", r.role.name, r.Verbs, r.Resources)
}

func isRead(verb string) bool { return slices.Contains([]string{"get", "list", "watch"}, verb) }

// elsewhere says of rules that no lab asks for who does.
func elsewhere(rule rbacv1.PolicyRule) string {
	if slices.Contains(rule.Resources, "nodepools/finalizers") {
		return "the admission plugin OwnerReferencesPermissionEnforcement asks for it, which the lab does not have"
	}
	return ""
}

// checkNoneTwice makes sure that no two rules allow the same: what the controller says then tells which one it lacks.
func checkNoneTwice(t *testing.T, grants []grant) {
	t.Helper()
	seen := map[string]bool{}
	for _, role := range grants {
		for _, r := range *role.rules {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, verb := range r.Verbs {
						what := strings.Join([]string{verb, resource, group, role.object.GetNamespace()}, " ")
						if seen[what] {
							t.Errorf("two rules allow to %s", what)
						}
						seen[what] = true
					}
				}
			}
		}
	}
}

// take takes rules from the account.
func (w *world) take(grants []grant, rules []*rule) {
	w.Helper()
	for _, r := range rules {
		r.taken = true
	}
	for _, role := range grants {
		w.writeRules(role, rules)
	}
}

// writeRules gives a role all rules but those that are taken.
func (w *world) writeRules(role grant, rules []*rule) {
	w.Helper()
	all := *role.rules
	*role.rules = slices.DeleteFunc(slices.Clone(all), func(have rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rules, func(r *rule) bool {
			return r.taken && r.role.name == role.name && reflect.DeepEqual(r.PolicyRule, have)
		})
	})
	w.update(role)
	*role.rules = all
}

// update writes a role; it is read again first, because Helm's labels stay as they are.
func (w *world) update(role grant) {
	w.Helper()
	role.object.SetResourceVersion("")
	if err := w.c.Update(w.Context(), role.object); err != nil {
		w.Fatalf("changing %s: %v", role.name, err)
	}
}

// makeForeignSecret makes the certificate's Secret as a controller without the chart did: Helm is to install beside it.
func (w *world) makeForeignSecret() {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: release, Name: "karpenter-cert"}}
	if err := w.c.Create(w.Context(), secret); err != nil {
		w.Fatal(err)
	}
}

// makeHard has nodes take a while to be ready, so that pods are told theirs before, and has pods whose eviction a budget forbids.
// It returns the Deployments that are to come and go.
func (w *world) makeHard() []appsv1.Deployment {
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
	inflate := &appsv1.Deployment{}
	if err := w.c.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "inflate"}, inflate); err != nil {
		w.Fatal(err)
	}
	inflate.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "inflate"}
	other := inflate.DeepCopy()
	other.Name = "larger"
	other.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "larger"}}
	other.Spec.Template.Labels = other.Spec.Selector.MatchLabels
	other.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	return []appsv1.Deployment{*inflate, *other}
}

// keepBusy gives the controller something to do all the time: pods come, nodes are deleted under them, pods go. What fails is tried in the
// next round: the controller is crippled on purpose. The Deployments of each round are new ones: one whose nodes are
// removed again and again would wait longer each time.
func (w *world) keepBusy(workloads []appsv1.Deployment) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for round := 0; ctx.Err() == nil; round++ {
			switch round % 3 {
			case 0:
				w.want(ctx, workloads, 3+round%5)
				w.haveOlderVersions(ctx)
				_ = w.c.Create(ctx, older())                                                                   // a NodePool and a KWOKNodeClass are made of it
				_ = w.c.Create(ctx, &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}}) // its status is to be written
			case 1:
				_ = w.c.DeleteAllOf(ctx, &v1.NodeClaim{})
			case 2:
				w.want(ctx, workloads, 0)
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

// haveOlderVersions says of a definition that it may have objects that an older version stored, so that they are stored
// anew.
func (w *world) haveOlderVersions(ctx context.Context) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "nodepools.karpenter.sh"
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v1beta1","v1"]}}`))
	_ = w.c.Status().Patch(ctx, definition, patch)
}

// want makes the Deployments anew with so many pods each, or only deletes them if that is none.
func (w *world) want(ctx context.Context, workloads []appsv1.Deployment, replicas int) {
	for i := range workloads {
		d := workloads[i].DeepCopy()
		background := metav1.DeletePropagationBackground
		_ = w.c.Delete(ctx, d.DeepCopy(), &client.DeleteOptions{PropagationPolicy: &background})
		if replicas > 0 {
			d.Spec.Replicas = new(int32(replicas))
			_ = w.c.Create(ctx, d)
		}
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

// ruleTime bounds how long the next complaint is waited for.
const ruleTime = 90 * time.Second

// refusal is how the API server names what somebody may not do.
var refusal = regexp.MustCompile(`cannot (\w+) resource \\?"([a-z/]+)\\?" in API group \\?"([a-z0-9.]*)\\?"`)

// restart starts the controller anew, and returns the pods that were there before.
func (w *world) restart() (before map[string]bool) {
	w.Helper()
	before = map[string]bool{}
	pods := w.controllers()
	for i := range pods {
		before[pods[i].Name] = true
		now := int64(1)
		_ = w.core.CoreV1().Pods(release).Delete(w.Context(), pods[i].Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	}
	return before
}

// awaitComplaints gives each rule back once the controller is refused what it allowed, until there is none left. Pods
// that were there before don't count, nor does what was said before a rule was taken: that had been given back.
func (w *world) awaitComplaints(grants []grant, rules []*rule, before map[string]bool) {
	w.Helper()
	began, last := time.Now(), time.Now()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for left := len(rules); left > 0; <-ticker.C {
		for _, r := range w.refused(rules, before) {
			w.Logf("%5.1f s  %s", time.Since(began).Seconds(), r)
			r.taken, last = false, time.Now()
			left--
			w.writeRules(r.role, rules)
		}
		if time.Since(last) > ruleTime {
			for _, r := range rules {
				if r.taken {
					w.Errorf("%s: nothing is missed within %s", r, ruleTime)
					r.taken = false
				}
			}
			for _, role := range grants {
				w.writeRules(role, rules)
			}
			return
		}
	}
}

// refused are the rules that are taken and that the controller says it lacks.
func (w *world) refused(rules []*rule, before map[string]bool) []*rule {
	w.Helper()
	var out []*rule
	for _, pod := range w.controllers() {
		if before[pod.Name] {
			continue
		}
		for _, log := range []string{w.logOf(pod.Name), w.previousLogOf(pod.Name)} {
			for _, found := range refusal.FindAllStringSubmatch(log, -1) {
				for _, r := range rules {
					if r.taken && !slices.Contains(out, r) && slices.Contains(r.Verbs, found[1]) &&
						slices.Contains(r.Resources, found[2]) && slices.Contains(r.APIGroups, found[3]) {
						out = append(out, r)
					}
				}
			}
		}
	}
	return out
}

// previousLogOf is what the process before said in a pod whose process has ended.
func (w *world) previousLogOf(pod string) string {
	raw, err := w.core.CoreV1().Pods(release).GetLogs(pod, &corev1.PodLogOptions{Previous: true}).DoRaw(w.Context())
	if err != nil {
		return ""
	}
	return string(raw)
}
