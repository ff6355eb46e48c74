package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/drift"
)

// oracle says of claims, by name, how they have drifted, and remembers whom it was asked about. It is a reader of
// claims, too.
type oracle struct {
	client.Reader
	says  map[string]cloudprovider.DriftReason
	err   error
	asked []string
}

func (o *oracle) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if key.Name == "gone" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, key.Name)
	}
	obj.SetName(key.Name)
	return nil
}

func (o *oracle) Drifted(_ context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	o.asked = append(o.asked, claim.Name)
	return o.says[claim.Name], o.err
}

// ask is one round; it returns whom the oracle was asked about.
func (o *oracle) ask(b *Book) string {
	o.asked = nil
	_ = b.AskDueDrift(context.Background(), o, o)
	slices.Sort(o.asked)
	return strings.Join(o.asked, " ")
}

func classed(name, class string) *v1.NodeClaim {
	return with(launchedClaim(name, "", metav1.ConditionTrue), func(c *v1.NodeClaim) {
		c.UID = types.UID("uid-" + name)
		c.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: class}
	})
}

func TestDriftIsAskedForAgainAndAgain(t *testing.T) {
	b, c := newBook()
	o := &oracle{says: map[string]cloudprovider.DriftReason{"a": "ImageDrift"}}
	var all []string
	for i := range 20 {
		b.SetClaim(classed(fmt.Sprintf("x%02d", i), "other"))
		all = append(all, fmt.Sprintf("x%02d", i))
	}
	b.SetClaim(classed("a", "default"))
	rounds := 0
	for range 61 { // within a minute all have been asked about once, and not all at once
		if got := o.ask(b); got != "" {
			rounds++
		}
		c.tick(time.Second)
	}
	if got := b.Snapshot().Claim("a").DriftedFrom; got != "ImageDrift" || rounds < 5 {
		t.Errorf("drifted %q, in %d rounds", got, rounds)
	}
	if got := b.Snapshot().Claim("x00").DriftedFrom; got != "" {
		t.Errorf("x00 drifted %q", got)
	}
	o.says = nil
	c.tick(2 * time.Minute)
	if got := o.ask(b); got != "" {
		t.Errorf("asked about %s within five minutes", got)
	}
	c.tick(3 * time.Minute)
	if got, want := o.ask(b), "a "+strings.Join(all, " "); got != want {
		t.Errorf("asked about %s after five minutes, want all", got)
	}
	if got := b.Snapshot().Claim("a").DriftedFrom; got != "" {
		t.Errorf("it is still %q", got)
	}
}

func TestDriftIsAskedForWhenTheClassChanges(t *testing.T) {
	b, c := newBook()
	class := cluster.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	b.NoteNodeClassVersion(class, "1")
	b.SetClaim(classed("a", "default"))
	b.SetClaim(classed("b", "other"))
	o := &oracle{}
	c.tick(time.Minute)
	o.ask(b)
	c.tick(10 * time.Second)
	b.NoteNodeClassVersion(class, "1")
	if got := o.ask(b); got != "" {
		t.Errorf("asked about %s although nothing has changed", got)
	}
	b.NoteNodeClassVersion(class, "2")
	if got := o.ask(b); got != "a" {
		t.Errorf("asked about %q after the class has changed", got)
	}
	b.NoteNodeClassVersion(class, "3")
	if got := o.ask(b); got != "" {
		t.Errorf("asked about %s at once again", got)
	}
	c.tick(5 * time.Second)
	if got := o.ask(b); got != "a" {
		t.Errorf("asked about %q a while later", got)
	}
}

func TestDriftAnswersThatFail(t *testing.T) {
	b, c := newBook()
	b.SetClaim(classed("a", "default"))
	o := &oracle{says: map[string]cloudprovider.DriftReason{"a": "ImageDrift"}}
	c.tick(time.Minute)
	o.ask(b)
	o.err = errors.New("boom")
	c.tick(5 * time.Minute)
	if got := o.ask(b); got != "a" || b.Snapshot().Claim("a").DriftedFrom != "ImageDrift" {
		t.Errorf("asked %q; drifted %q: what the cloud said last must stand", got, b.Snapshot().Claim("a").DriftedFrom)
	}
	if err := b.AskDueDrift(t.Context(), o, o); err != nil {
		t.Errorf("asked at once again: %v", err)
	}
	c.tick(drift.RetryDrift)
	o.err = &cloudprovider.NotFoundError{}
	if got := o.ask(b); got != "a" || b.Snapshot().Claim("a").DriftedFrom != "" {
		t.Errorf("asked %q; drifted %q although it is gone", got, b.Snapshot().Claim("a").DriftedFrom)
	}
	b.SetClaim(with(classed("gone", "default"), func(*v1.NodeClaim) {}))
	c.tick(time.Minute)
	if err := b.AskDueDrift(t.Context(), o, o); err != nil {
		t.Errorf("a claim that is gone: %v", err)
	}
}

func TestWhoIsNotAskedAbout(t *testing.T) {
	b, c := newBook()
	for _, claim := range []*v1.NodeClaim{
		with(classed("another's", "default"), func(c *v1.NodeClaim) { c.Spec.NodeClassRef.Kind = "EC2NodeClass" }),
		with(classed("leaving", "default"), func(o *v1.NodeClaim) {
			now := metav1.NewTime(c.now())
			o.DeletionTimestamp = &now
		}),
		with(classed("young", "default"), func(c *v1.NodeClaim) { c.Status.ProviderID = "" }),
		classed("removed", "default"),
	} {
		b.SetClaim(claim)
	}
	b.DeleteClaim("removed")
	c.tick(time.Minute)
	if got := (&oracle{}).ask(b); got != "" {
		t.Errorf("asked about %s", got)
	}
}

// Until the cloud has been asked after a restart, what the claim's condition says of it holds.
func TestDriftOutlivesARestart(t *testing.T) {
	for _, c := range []struct{ reason, want string }{{"ImageDrift", "ImageDrift"}, {"RequirementsDrifted", ""},
		{"NodePoolDrifted", ""}} {
		b, clock := newBook()
		b.SetClaim(with(classed("a", "default"), func(o *v1.NodeClaim) {
			o.Status.Conditions = append(o.Status.Conditions, metav1.Condition{Type: v1.ConditionTypeDrifted,
				Status: metav1.ConditionTrue, Reason: c.reason})
		}))
		if got := b.Snapshot().Claim("a").DriftedFrom; got != c.want {
			t.Errorf("condition %s: drifted %q, want %q", c.reason, got, c.want)
		}
		clock.tick(time.Minute)
		(&oracle{}).ask(b)
		if got := b.Snapshot().Claim("a").DriftedFrom; got != "" {
			t.Errorf("condition %s, and the cloud says no: drifted %q", c.reason, got)
		}
	}
}

// The loop without end asks the same questions, and tells once that answers fail.
func TestDriftsInTheBackground(t *testing.T) {
	b, c := newBook()
	b.SetClaim(classed("a", "default"))
	c.tick(time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	told := make(chan error, 10)
	ended := make(chan struct{})
	o := &oracle{err: errors.New("boom")}
	go func() { _ = b.KeepDrift(ctx, o, o, func(err error) { told <- err }); close(ended) }()
	if err := <-told; err == nil || err.Error() != "asking whether the instance of NodeClaim a has drifted: boom" {
		t.Errorf("told %v", err)
	}
	stop()
	<-ended
}

// That the cloud says what was believed anyway is no reason to look at every node again.
func TestOnlyNewsAboutDriftMatters(t *testing.T) {
	b, c := newBook()
	o := &oracle{says: map[string]cloudprovider.DriftReason{}}
	b.SetClaim(classed("a", "default"))
	ask := func() (told string, mattered bool) {
		before := b.Snapshot().DisruptionRev
		c.tick(drift.AskDrift)
		return o.ask(b), b.Snapshot().DisruptionRev != before
	}
	if told, mattered := ask(); told != "a" || mattered {
		t.Errorf("the first word about %q mattered: %v", told, mattered)
	}
	o.says["a"] = "ImageDrift"
	if told, mattered := ask(); told != "a" || !mattered {
		t.Errorf("the drift of %q mattered: %v", told, mattered)
	}
	if told, mattered := ask(); told != "a" || mattered {
		t.Errorf("the same about %q mattered: %v", told, mattered)
	}
}
