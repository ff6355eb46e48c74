package actuate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// standing says how much of a fence stands: the move, the reason, the taint.
func (s *actorWorld) standing(name string) string {
	s.Helper()
	var out []string
	claim := s.claim(name)
	if move := claim.Annotations[cluster.MoveAnnotation]; move != "" {
		out = append(out, "move "+move)
	}
	if reason := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionTypeDisruptionReason); reason != nil {
		out = append(out, "reason "+reason.Reason)
	}
	node := &corev1.Node{}
	if err := s.api.Get(s.Context(), client.ObjectKey{Name: name}, node); err != nil {
		s.Fatal(err)
	}
	if len(node.Spec.Taints) > 0 {
		out = append(out, "taint")
	}
	return strings.Join(out, ", ")
}

// writesAllowed makes every write after the first few fail, as if the process had died before it.
func writesAllowed(left *int) interceptor.Funcs {
	spent := func() error {
		if *left--; *left < 0 {
			return errors.New("dead")
		}
		return nil
	}
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			if err := spent(); err != nil {
				return err
			}
			return c.Patch(ctx, obj, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if err := spent(); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	}
}

// Whatever a crash leaves of a fence is the beginning of the same list, and both doing it again and taking it down end
// well.
func TestFenceOfAMoveSurvivesACrash(t *testing.T) {
	whole := []string{"move m1", "reason Underutilized", "taint"}
	fence := command.Fence{Claim: "a", UID: "uid-1", Node: "a", Reason: command.Underutilized, Move: "m1"}
	for crash := range 4 {
		left := crash
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		s := newStage(t, writesAllowed(&left), ours("a"), node)
		if out := s.do(fence); (out.Err != nil) != (crash < 3) {
			t.Fatalf("crash before write %d: %v", crash+1, out.Err)
		}
		if got := s.standing("a"); got != strings.Join(whole[:crash], ", ") {
			t.Errorf("a crash before write %d leaves %q", crash+1, got)
		}
		left = 100
		if out := s.do(fence); out.Err != nil || s.standing("a") != strings.Join(whole, ", ") {
			t.Errorf("again after write %d: %v, %q", crash, out.Err, s.standing("a"))
		}
		left = crash // the way back
		unfence := command.Unfence{Claim: "a", UID: "uid-1", Node: "a"}
		s.do(unfence)
		if got := s.standing("a"); got != strings.Join(whole[:3-crash], ", ") {
			t.Errorf("a crash before write %d of the opening leaves %q", crash+1, got)
		}
		left = 100
		if out := s.do(unfence); out.Err != nil || s.standing("a") != "" {
			t.Errorf("opened again: %v, %q", out.Err, s.standing("a"))
		}
	}
}

// A node that goes to save money is Consolidatable before it goes, however soon that is.
func TestFenceSaysThatANodeIsConsolidatable(t *testing.T) {
	for reason, want := range map[command.Reason]bool{command.Empty: true, command.Underutilized: true,
		command.Drifted: false, command.Unhealthy: false} {
		s := newStage(t, interceptor.Funcs{}, ours("a"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		if out := s.do(command.Fence{Claim: "a", Node: "a", Reason: reason}); out.Err != nil {
			t.Fatal(out.Err)
		}
		if got := meta.IsStatusConditionTrue(s.claim("a").Status.Conditions,
			v1.ConditionTypeConsolidatable); got != want {
			t.Errorf("%s: Consolidatable is %t, want %t", reason, got, want)
		}
	}
}

// A fence that is for no move takes the place of one that was.
func TestFenceWithoutAMoveForgetsTheLast(t *testing.T) {
	claim := ours("a")
	claim.Annotations = map[string]string{cluster.MoveAnnotation: "old", "keep": "me"}
	s := newStage(t, interceptor.Funcs{}, claim, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	out := s.do(command.Fence{Claim: "a", Node: "a", Reason: command.Empty})
	if out.Err != nil || s.standing("a") != "reason Empty, taint" || s.claim("a").Annotations["keep"] != "me" {
		t.Errorf("%v, %q, %v", out.Err, s.standing("a"), s.claim("a").Annotations)
	}
}

// TestFenceOfANodeThatIsGone is what a replica with an old view asks for: an error makes it wait before it asks again.
func TestFenceOfANodeThatIsGone(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	if out := s.do(command.Fence{Claim: "a", UID: "uid-1", Node: "a", Reason: command.Drifted,
		Move: "m"}); out.Err == nil {
		t.Error("half a fence is no error")
	}
	if out := s.do(command.Fence{Claim: "a", UID: "uid-1", Node: "a", Reason: command.Requested}); out.Err != nil {
		t.Errorf("a claim whose end was asked for and whose node is gone: %v", out.Err)
	}
}

func TestFenceSparesANamesake(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if out := s.do(command.Fence{Claim: "a", UID: "other", Node: "a", Reason: command.Underutilized,
		Move: "m"}); out.Err != nil || s.standing("a") != "" {
		t.Errorf("%v, %q", out.Err, s.standing("a"))
	}
	for _, c := range []command.Command{
		command.WriteClaimHash{Claim: "a", UID: "other", Hash: "1", Version: "v3"},
		command.Unfence{Claim: "a", UID: "other", Node: "a", RestUntil: time.Unix(0, 0), Rests: 1},
	} {
		if out := s.do(c); out.Err != nil || len(s.claim("a").Annotations) != 0 {
			t.Errorf("%T: %v, %v", c, out.Err, s.claim("a").Annotations)
		}
	}
	if out := s.do(command.Fence{Claim: "a", UID: "uid-1", Node: "a", Reason: command.Underutilized,
		Move: "m"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	whole := s.standing("a")
	if !strings.HasSuffix(whole, "taint") {
		t.Fatalf("only %q stands", whole)
	}
	for _, c := range []command.Unfence{
		{Claim: "a", UID: "other", Node: "a"}, {Claim: "a", UID: "other", Node: "a", RestUntil: time.Unix(0, 0),
			Rests: 1}, {Claim: "gone", UID: "other", Node: "a"}, {Claim: "gone", Node: "a"},
	} {
		if out := s.do(c); out.Err != nil || s.standing("a") != whole {
			t.Errorf("%+v leaves %q, %v", c, s.standing("a"), out.Err)
		}
	}
}

func TestGivingUpWritesTheRest(t *testing.T) {
	claim := ours("a")
	claim.Annotations = map[string]string{cluster.MoveAnnotation: "m"}
	s := newStage(t, interceptor.Funcs{}, claim, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	until := time.Date(2026, 11, 15, 12, 30, 0, 0, time.UTC)
	if out := s.do(command.Unfence{Claim: "a", UID: "uid-1", Node: "a", RestUntil: until, Rests: 3}); out.Err != nil {
		t.Fatal(out.Err)
	}
	have := s.claim("a").Annotations
	at, rests := cluster.ParseRest(have[cluster.RestAnnotation])
	if _, moving := have[cluster.MoveAnnotation]; moving || !at.Equal(until) || rests != 3 {
		t.Errorf("annotations %v", have)
	}
	later := until.Add(time.Minute)
	if out := s.do(command.Unfence{Claim: "a", UID: "uid-1", Node: "a", RestUntil: later, Rests: 1,
		ForSaving: true}); out.Err != nil {
		t.Fatal(out.Err)
	}
	have = s.claim("a").Annotations
	at, rests = cluster.ParseRest(have[cluster.SavingRestAnnotation])
	if own, _ := cluster.ParseRest(have[cluster.RestAnnotation]); !own.Equal(until) || !at.Equal(later) || rests != 1 {
		t.Errorf("a rest from saving money is another: annotations %v", have)
	}
}

func TestStamps(t *testing.T) {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "p",
		Annotations: map[string]string{"keep": "me"}}}
	s := newStage(t, interceptor.Funcs{}, pool, ours("a"))
	for _, uid := range []string{"other", "p"} {
		out := s.do(command.WritePoolHash{Pool: "default", UID: uid, Hash: "12", Version: "v3"})
		if out.Err != nil || len(out.Writes) != 1 {
			t.Fatalf("outcome %+v", out)
		}
		if err := s.api.Get(t.Context(), client.ObjectKey{Name: "default"}, pool); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(pool.Annotations[v1.NodePoolHashAnnotationKey],
			pool.Annotations[v1.NodePoolHashVersionAnnotationKey], pool.Annotations["keep"])
		if want := map[string]string{"other": "me", "p": "12v3me"}[uid]; got != want {
			t.Errorf("stamp for UID %s: %q, want %q", uid, got, want)
		}
	}
	if out := s.do(command.WriteClaimHash{Claim: "a", UID: "uid-1", Hash: "12", Version: "v3"}); out.Err != nil ||
		s.claim("a").Annotations[v1.NodePoolHashAnnotationKey] != "12" {
		t.Errorf("%v, %v", out.Err, s.claim("a").Annotations)
	}
	for _, c := range []command.Command{command.WriteClaimHash{Claim: "gone", Hash: "1"},
		command.WritePoolHash{Pool: "gone", Hash: "1"}} {
		if out := s.do(c); out.Err != nil {
			t.Errorf("%T of what is gone: %v", c, out.Err)
		}
	}
}

// A claim says from the start which template it came from and which nodes it replaces; its node is not told the latter.
func TestClaimsSayWhatTheyAreMadeFrom(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	c := command.CreateClaim{Name: "a", Pool: "default", Replaces: "m1", Template: cluster.Template{
		ExpireAfter: "Never", Hash: cluster.TemplateHash{Hash: "12", Version: "v3"},
		Annotations: cluster.LabelsOf(map[string]string{"note": "x", v1.NodePoolHashAnnotationKey: "forged"}),
	}}
	if out := s.do(c); out.Err != nil {
		t.Fatal(out.Err)
	}
	have := s.claim("a").Annotations
	if have[v1.NodePoolHashAnnotationKey] != "12" || have[v1.NodePoolHashVersionAnnotationKey] != "v3" ||
		have[cluster.ReplacesAnnotation] != "m1" || have["note"] != "x" {
		t.Errorf("annotations %v", have)
	}
	if out := s.do(command.Register{Claim: "a", Node: "n"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	node := &corev1.Node{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "n"}, node); err != nil {
		t.Fatal(err)
	}
	if _, told := node.Annotations[cluster.ReplacesAnnotation]; told ||
		node.Annotations[v1.NodePoolHashAnnotationKey] != "12" {
		t.Errorf("the node's annotations %v", node.Annotations)
	}
}
