package provisioner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/roundtrip"
)

// Labels of what is made from an older object: the name of that.
const (
	ProvisionerLabel = "tenon.sh/provisioner"
	TemplateLabel    = "tenon.sh/awsnodetemplate"
)

// ours begins the names of annotations that users set on NodePools, and so on Provisioners.
const ours = "tenon.sh/"

// owner is the older object that something is made from.
type owner struct {
	object client.Object
	kind   schema.GroupVersionKind
}

func (o owner) String() string { return o.kind.Kind + " " + o.object.GetName() }

// labelKey is the label that names the owner on what it owns.
func (o owner) labelKey() string {
	if o.kind.Group == v1.Group {
		return ProvisionerLabel
	}
	return TemplateLabel
}

// mark makes an object the owner's.
func (o owner) mark(object client.Object) {
	labels := maps.Clone(object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[o.labelKey()] = o.object.GetName()
	object.SetLabels(labels)
	ref := metav1.NewControllerRef(o.object, o.kind)
	// With it, clusters with the admission plugin OwnerReferencesPermissionEnforcement would ask for one more right.
	// Its one effect is that a deletion in the foreground waits.
	ref.BlockOwnerDeletion = nil
	object.SetOwnerReferences([]metav1.OwnerReference{*ref})
}

// copyAnnotations hands on what users say of Tenon's own additions.
func copyAnnotations(from, to client.Object) {
	out := map[string]string{}
	for key, value := range from.GetAnnotations() {
		if strings.HasPrefix(key, ours) {
			out[key] = value
		}
	}
	if len(out) > 0 {
		to.SetAnnotations(out)
	}
}

// ensure makes an object, or makes it again what its owner says. One of the same name that somebody else made is left
// alone.
func (o Options) ensure(ctx context.Context, by owner, want client.Object) (verdict, error) {
	kind := want.GetObjectKind().GroupVersionKind()
	what := kind.Kind + " " + want.GetName()
	have := blank(want)
	err := o.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		by.mark(want)
		return o.sent(ctx, o.Client.Create(ctx, want), "creating "+what)
	}
	if err != nil {
		return verdict{}, fmt.Errorf("reading %s: %w", what, err)
	}
	if !metav1.IsControlledBy(have, by.object) {
		return taken(by, what, have), nil
	}
	if have.GetDeletionTimestamp() != nil {
		return verdict{reason: ReasonLeaving,
			message: what + " is being deleted; it is made again when its nodes are gone", wait: again}, nil
	}
	patch, edited, err := difference(by, have, want)
	if err != nil || patch == nil {
		return verdict{ok: err == nil}, err
	}
	lost := lostAnnotations(have, want)
	v, err := o.sent(ctx, o.Client.Patch(ctx, have, client.RawPatch(types.MergePatchType, patch)), "patching "+what)
	if err != nil || !v.ok {
		return v, err
	}
	ref := &corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind,
		Name: want.GetName(), UID: have.GetUID()}
	// The owner's last word was carried out before, so it was not the owner who made the difference.
	if edited && settled(by.object) {
		o.Events.Eventf(ref, nil, corev1.EventTypeWarning, EventPutBack, "Translate",
			"It was changed by hand and is again as %s says; change that instead", by)
	}
	// Whoever annotates all NodePools believes all of them held.
	if len(lost) > 0 {
		o.Events.Eventf(ref, nil, corev1.EventTypeWarning, EventPutBack, "Translate",
			"%s does not have %s, so it was taken away here, too; annotate %s instead", by, strings.Join(lost, ", "),
			by)
	}
	return v, nil
}

// letGo makes what an owner has made nobody's, if the owner is deleted and that is to stay (kubectl delete
// --cascade=orphan). The garbage collector does that, too, but only for what it knows of: of kinds that are new it
// learns every half a minute, and what it learns of after the owner has gone it deletes.
func (o Options) letGo(ctx context.Context, by owner, made ...client.Object) (ctrl.Result, error) {
	if !slices.Contains(by.object.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		return ctrl.Result{}, nil
	}
	for _, object := range made {
		have := blank(object)
		if err := o.Client.Get(ctx, client.ObjectKeyFromObject(object), have); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return ctrl.Result{}, fmt.Errorf("reading %s, which is to outlive %s: %w", object.GetName(), by, err)
		}
		if !metav1.IsControlledBy(have, by.object) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(have.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
			return ref.UID == by.object.GetUID()
		})
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": have.GetResourceVersion(),
				"ownerReferences": others, "labels": map[string]any{by.labelKey(): nil}},
		})
		if err != nil {
			return ctrl.Result{}, err
		}
		err = o.Client.Patch(ctx, have, client.RawPatch(types.MergePatchType, patch))
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("letting %s go, which is to outlive %s: %w", object.GetName(), by, err)
		}
	}
	return ctrl.Result{}, nil
}

// lostAnnotations are those of a NodePool that its owner does not have, so that they go. What the conversion of
// versions keeps there is nobody's wish.
func lostAnnotations(have, want client.Object) []string {
	if _, isPool := want.(*v1.NodePool); !isPool {
		return nil
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(have.GetAnnotations())) {
		_, wanted := want.GetAnnotations()[key]
		if strings.HasPrefix(key, ours) && !wanted && key != roundtrip.V1Beta1OnlyAnnotationKey {
			out = append(out, key)
		}
	}
	return out
}

// taken is the verdict on an object of the same name that somebody else made.
func taken(by owner, what string, have client.Object) verdict {
	other := metav1.GetControllerOf(have)
	if other != nil && other.Kind == by.kind.Kind && other.Name == by.object.GetName() {
		return verdict{reason: ReasonLeaving,
			message: what + " belongs to an earlier " + by.String() + " and has to go first", wait: again}
	}
	made := "and was not made from this " + by.kind.Kind
	if other != nil {
		made = fmt.Sprintf("and was made from %s %s", other.Kind, other.Name)
	}
	return verdict{reason: ReasonNameTaken, wait: again,
		message: fmt.Sprintf("%s exists already %s; it is left as it is: delete it, or give this %s another name",
			what, made, by.kind.Kind)}
}

// sent is the verdict on a request to the API server. What it finds wrong is for the author of the object, who reads
// its condition and the event, and for whoever runs the controller: the log has it each time.
func (o Options) sent(ctx context.Context, err error, doing string) (verdict, error) {
	switch {
	case err == nil:
		return verdict{ok: true}, nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err):
		ctrl.LoggerFrom(ctx).Error(err, "the API server refuses what an older object means; trying again",
			"doing", doing,
			"in", again)
		return verdict{reason: ReasonRefused, message: fmt.Sprintf("%s: %s", doing, err), wait: again}, nil
	default:
		return verdict{}, fmt.Errorf("%s: %w", doing, err)
	}
}

// settled tells whether the owner's last word was carried out already, so that a difference is not its own doing.
func settled(object client.Object) bool {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(u, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		seen, _, _ := unstructured.NestedInt64(condition, "observedGeneration")
		if condition["type"] == ReasonTranslated && condition["status"] == string(metav1.ConditionTrue) {
			return seen == object.GetGeneration()
		}
	}
	return false
}

// blank is an empty object of the same kind. NodePools are read as they are stored, since a typed watch would know
// nothing as soon as one of them can't be read.
func blank(want client.Object) client.Object {
	if _, ok := want.(*v1.NodePool); ok {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePool"))
		return u
	}
	return reflect.New(reflect.TypeOf(want).Elem()).Interface().(client.Object)
}

// difference is the patch that makes an object what is wanted; nil if it is. edited tells whether its spec differs.
func difference(by owner, have, want client.Object) (patch []byte, edited bool, err error) {
	labels := maps.Clone(have.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[by.labelKey()] = by.object.GetName()
	annotations := maps.Clone(have.GetAnnotations())
	if _, isPool := want.(*v1.NodePool); isPool {
		maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, ours) })
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, want.GetAnnotations())
	}
	edited = !sameSpec(have, want)
	if !edited && maps.Equal(labels, have.GetLabels()) && maps.Equal(annotations, have.GetAnnotations()) {
		return nil, false, nil
	}
	from, err := parts(have, have.GetLabels(), have.GetAnnotations())
	if err != nil {
		return nil, false, err
	}
	source := have
	if edited {
		source = want
	}
	to, err := parts(source, labels, annotations)
	if err != nil {
		return nil, false, err
	}
	if patch, err = jsonpatch.CreateMergePatch(from, to); err != nil {
		return nil, false, fmt.Errorf("comparing %s: %w", have.GetName(), err)
	}
	// Who changes it at the same time is not overwritten unseen.
	locked, err := jsonpatch.MergePatch(patch,
		fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, have.GetResourceVersion()))
	return locked, edited, err
}

// parts are those of an object that its owner decides, as JSON.
func parts(object client.Object, labels, annotations map[string]string) ([]byte, error) {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", object.GetName(), err)
	}
	return json.Marshal(map[string]any{"spec": u["spec"],
		"metadata": map[string]any{"labels": labels, "annotations": annotations}})
}

// sameSpec compares what two objects ask for; texts that mean the same quantity or the same JSON are the same.
func sameSpec(have, want client.Object) bool {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(have)
	if err != nil {
		return false
	}
	read := reflect.New(reflect.TypeOf(want).Elem())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u, read.Interface()); err != nil {
		return false
	}
	same := equality.Semantic.Copy()
	if err := same.AddFunc(func(a, b apiextensionsv1.JSON) bool { return jsonpatch.Equal(a.Raw, b.Raw) }); err != nil {
		return false
	}
	spec := func(v reflect.Value) any { return v.Elem().FieldByName("Spec").Interface() }
	return same.DeepEqual(spec(read), spec(reflect.ValueOf(want)))
}
