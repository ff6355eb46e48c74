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
		if err := w.c.List(w.Context(), list,
			client.MatchingLabels{"app.kubernetes.io/instance": release}); err != nil {
			w.Fatal(err)
		}
	}
	for i := range wide.Items {
		if role := &wide.Items[i]; role.Name != "karpenter-view" && role.Name != "karpenter-admin" {
			// those are for people
			out = append(out, grant{"ClusterRole " + role.Name, role, &role.Rules})
		}
	}
	for i := range narrow.Items {
		role := &narrow.Items[i]
		out = append(out, grant{"Role " + role.Namespace + "/" + role.Name, role, &role.Rules})
	}
	return out
}

// TestEachRuleIsNeeded takes all that the controller's account may do, one verb on one resource being one right, and
// gives each right back once the controller says by name that it may not do just that. A right of which nothing is said
// is not needed. First it takes those that the start needs, all at once, then, from a controller that runs, those by
// which it only changes something. Taking one at a time would show the same, because a complaint names its verb and its
// resource, and would take an hour. Which of a rule's resourceNames is needed is not tried.
func TestEachRuleIsNeeded(t *testing.T) {
	w := newWorld(t)
	w.makeForeignSecret()
	w.runHelm("install", release, w.helm.Chart("karpenter"), "--namespace", release, "--set",
		"settings.cloudProvider=kwok,replicas=1", "--wait", "--timeout", "2m")
	w.apply("examples/kwok/nodepool.yaml")
	w.apply("examples/kwok/inflate.yaml")
	workloads := w.makeHard()
	grants := w.grants()
	start, work := w.rights(grants)
	if len(start) < 40 || len(work) < 25 {
		t.Errorf("only %d rights are for the start, and %d for work", len(start), len(work))
	}
	stop := w.keepBusy(w.rounds(workloads))
	defer stop()
	w.take(grants, start)
	w.awaitComplaints(grants, start, w.restart())
	w.take(grants, work)
	w.awaitComplaints(grants, work, nil)
}

// right is one verb on one resource that the controller's account has by a role.
type right struct {
	rbacv1.PolicyRule
	role grant
	// taken says that the account does not have it.
	taken bool
}

func (r *right) String() string {
	return fmt.Sprintf("%s without %s %s %s", r.role.name, r.Verbs[0], r.Resources[0], r.APIGroups[0])
}

// split makes a rule of each verb and resource of the rules.
func split(rules []rbacv1.PolicyRule) (out []rbacv1.PolicyRule) {
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					out = append(out, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource},
						Verbs: []string{verb}, ResourceNames: r.ResourceNames})
				}
			}
		}
	}
	return out
}

// rights are those of the roles: what the start needs, which is all that reads and the lease, and the others. The
// roles' rules are split into them.
func (w *world) rights(grants []grant) (start, work []*right) {
	w.Helper()
	for _, role := range grants {
		*role.rules = split(*role.rules)
		for _, r := range *role.rules {
			one := &right{PolicyRule: r, role: role}
			switch why := elsewhere(r); {
			case why != "":
				w.Logf("         %s: not tried; %s", one, why)
			case isRead(r.Verbs[0]), slices.Contains(r.Resources, "leases"):
				start = append(start, one)
			default:
				work = append(work, one)
			}
		}
	}
	w.checkNoneTwice(grants)
	return start, work
}

func isRead(verb string) bool { return slices.Contains([]string{"get", "list", "watch"}, verb) }

// elsewhere says of rights that no lab asks for who does.
func elsewhere(r rbacv1.PolicyRule) string {
	switch {
	case strings.HasSuffix(r.Resources[0], "/finalizers"):
		return "the admission plugin OwnerReferencesPermissionEnforcement asks for it, which the lab does not have"
	case r.Verbs[0] == "get" && slices.Contains([]string{"nodes", "nodepools", "nodeclaims"}, r.Resources[0]):
		return "only after a conflict an object is read past the cache"
	}
	return ""
}

// checkNoneTwice makes sure that no two rules allow the same: what the controller says then tells which one it lacks.
func (w *world) checkNoneTwice(grants []grant) {
	w.Helper()
	seen := map[string]bool{}
	for _, role := range grants {
		for _, r := range *role.rules {
			what := strings.Join([]string{r.Verbs[0], r.Resources[0], r.APIGroups[0], role.object.GetNamespace()}, " ")
			if seen[what] {
				w.Errorf("two rules allow to %s", what)
			}
			seen[what] = true
		}
	}
}

// take takes rights from the account.
func (w *world) take(grants []grant, rights []*right) {
	w.Helper()
	for _, r := range rights {
		r.taken = true
	}
	for _, role := range grants {
		w.writeRules(role, rights)
	}
}

// writeRules gives a role all rights but those that are taken.
func (w *world) writeRules(role grant, rights []*right) {
	w.Helper()
	all := *role.rules
	*role.rules = slices.DeleteFunc(slices.Clone(all), func(have rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rights, func(r *right) bool {
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

// makeHard has nodes take a while to be ready, so that pods are told theirs before, and has pods whose eviction a
// budget forbids. It returns the Deployments that are to come and go.
func (w *world) makeHard() []appsv1.Deployment {
	w.Helper()
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	patch := `{"spec":{"disruption":{"consolidateAfter":"0s"},"template":{` +
		`"metadata":{"labels":{"lab.tenon.sh/boot-seconds":"2"}},"spec":{"terminationGracePeriod":"2s"}}}}`
	if err := w.c.Patch(w.Context(), pool, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		w.Fatal(err)
	}
	none := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "inflate"},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "inflate"}}}}
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
	other.Spec.Template.Spec.Containers[0].Resources.Requests =
		corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	return []appsv1.Deployment{*inflate, *other}
}

// keepBusy gives the controller something to do all the time, one round after the other. What fails is tried again
// later: the controller is crippled on purpose.
func (w *world) keepBusy(rounds []func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			rounds[i%len(rounds)](ctx)
		}
	})
	return func() { cancel(); busy.Wait() }
}

// rounds: pods come, nodes are deleted under them, pods go. The Deployments of each round are new ones: one whose nodes
// are removed again and again would wait longer each time.
func (w *world) rounds(workloads []appsv1.Deployment) []func(context.Context) {
	replicas := 3
	other := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	return []func(context.Context){
		func(ctx context.Context) {
			w.want(ctx, workloads, replicas)
			replicas = 3 + (replicas+1)%5
			w.haveOlderVersions(ctx)
			w.spoilWebhook(ctx)
			_ = w.c.Create(ctx, older())          // a NodePool and a KWOKNodeClass are made of it
			_ = w.c.Create(ctx, other.DeepCopy()) // its status is to be written
			w.settle(ctx)
		},
		func(ctx context.Context) {
			_ = w.c.DeleteAllOf(ctx, &v1.NodeClaim{})
			w.spoilOlder(ctx)
			w.settle(ctx)
		},
		func(ctx context.Context) {
			w.want(ctx, workloads, 0)
			_ = w.c.Delete(ctx, older())
			_ = w.c.Delete(ctx, other.DeepCopy())
			w.round(ctx, func(ctx context.Context) bool { return w.noClaims(ctx) }) // empty nodes go
		},
	}
}

// older is a Provisioner, of which a NodePool is made.
func older() *v1alpha5.Provisioner {
	return &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "older"}, Spec: v1alpha5.ProvisionerSpec{
		Provider: &apiextensionsv1.JSON{Raw: []byte("{}")}, Weight: new(int32(1)),
	}}
}

// spoilOlder changes what was made of the Provisioner, which is to be put back, and then has the Provisioner name
// another class: its own is no longer needed.
func (w *world) spoilOlder(ctx context.Context) {
	class := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "provisioner-older"}}
	const label = "tenon.sh/provisioner"
	spoiled := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"spoiled"}}}`, label)
	_ = w.c.Patch(ctx, class, client.RawPatch(types.MergePatchType, spoiled))
	w.round(ctx, func(ctx context.Context) bool {
		return w.c.Get(ctx, client.ObjectKeyFromObject(class), class) == nil && class.Labels[label] == "older"
	})
	reference := `{"apiVersion":"karpenter.kwok.sh/v1alpha1","kind":"KWOKNodeClass","name":"default"}`
	refers := fmt.Appendf(nil, `{"spec":{"provider":null,"providerRef":%s}}`, reference)
	_ = w.c.Patch(ctx, older(), client.RawPatch(types.MergePatchType, refers))
}

// haveOlderVersions says of a definition that it may have objects that an older version stored, so that they are stored
// anew.
func (w *world) haveOlderVersions(ctx context.Context) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "nodepools.karpenter.sh"
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v1beta1","v1"]}}`))
	_ = w.c.Status().Patch(ctx, definition, patch)
}

// spoilWebhook takes the certificate away, and the way to the webhook, so that both are written anew.
func (w *world) spoilWebhook(ctx context.Context) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: release, Name: "karpenter-cert"}}
	_ = w.c.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(`{"data":null}`)))
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "nodepools.karpenter.sh"
	none := []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	_ = w.c.Patch(ctx, definition, client.RawPatch(types.MergePatchType, none))
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

// settle waits until all Deployments have the pods that are wanted and no node is on its way out, or the round is over.
func (w *world) settle(ctx context.Context) {
	w.round(ctx, func(ctx context.Context) bool {
		list, err := w.core.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool {
			have, want := d.Status, *d.Spec.Replicas
			return have.ObservedGeneration != d.Generation || have.ReadyReplicas != want || have.Replicas != want
		}) && !w.leaving(ctx)
	})
}

// round waits until the controller is there, or the round is over.
func (w *world) round(ctx context.Context, there func(context.Context) bool) {
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
		if there(ctx) {
			return
		}
	}
}

// leaving reports whether a NodeClaim is being deleted.
func (w *world) leaving(ctx context.Context) bool {
	list := &v1.NodeClaimList{}
	err := w.c.List(ctx, list)
	return err != nil || slices.ContainsFunc(list.Items, func(c v1.NodeClaim) bool {
		return c.DeletionTimestamp != nil
	})
}

// noClaims reports whether there is no NodeClaim.
func (w *world) noClaims(ctx context.Context) bool {
	list := &v1.NodeClaimList{}
	return w.c.List(ctx, list) == nil && len(list.Items) == 0
}

// rightTime bounds how long the next complaint is waited for.
const rightTime = 90 * time.Second

// refusal is how the API server names what somebody may not do.
var refusal = regexp.MustCompile(`cannot (\w+) resource \\?"([a-z0-9/]+)\\?" in API group \\?"([a-z0-9.]*)\\?"`)

// restart starts the controller anew, as if it had never led, and returns the pods that were there before.
func (w *world) restart() (before map[string]bool) {
	w.Helper()
	_ = w.core.CoordinationV1().Leases(release).Delete(w.Context(), "karpenter-leader-election", metav1.DeleteOptions{})
	before = map[string]bool{}
	pods := w.controllers()
	for i := range pods {
		before[pods[i].Name] = true
		now := int64(1)
		_ = w.core.CoreV1().Pods(release).Delete(w.Context(), pods[i].Name,
			metav1.DeleteOptions{GracePeriodSeconds: &now})
	}
	return before
}

// awaitComplaints gives each right back once the controller is refused it, until there is none left. Pods that were
// there before don't count, nor does what was said before a right was taken: that had been given back.
func (w *world) awaitComplaints(grants []grant, rights []*right, before map[string]bool) {
	w.Helper()
	began, last := time.Now(), time.Now()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for left := len(rights); left > 0; <-ticker.C {
		changed := map[string]grant{}
		for _, r := range w.refused(rights, before) {
			w.Logf("%5.1f s  %s", time.Since(began).Seconds(), r)
			r.taken, last = false, time.Now()
			left--
			changed[r.role.name] = r.role
		}
		for _, role := range changed {
			w.writeRules(role, rights)
		}
		if time.Since(last) > rightTime {
			w.giveAllBack(grants, rights)
			return
		}
	}
}

// giveAllBack gives back what nobody missed.
func (w *world) giveAllBack(grants []grant, rights []*right) {
	w.Helper()
	for _, r := range rights {
		if r.taken {
			w.Errorf("%s: nothing is missed within %s", r, rightTime)
			r.taken = false
		}
	}
	for _, role := range grants {
		w.writeRules(role, rights)
	}
}

// refused are the rights that are taken and that the controller says it lacks.
func (w *world) refused(rights []*right, before map[string]bool) []*right {
	w.Helper()
	var out []*right
	for _, pod := range w.controllers() {
		if before[pod.Name] {
			continue
		}
		for _, log := range []string{w.logOf(pod.Name), w.previousLogOf(pod.Name)} {
			for _, found := range refusal.FindAllStringSubmatch(log, -1) {
				for _, r := range rights {
					same := r.Verbs[0] == found[1] && r.Resources[0] == found[2] && r.APIGroups[0] == found[3]
					if same && r.taken && !slices.Contains(out, r) {
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
