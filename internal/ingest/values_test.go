package ingest

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/render"
)

func TestClaimValuesOfTheLifecycle(t *testing.T) {
	b, _ := newBook()
	change := func(text string) *v1.NodeClaim {
		return with(claimObject("a", "1"), func(c *v1.NodeClaim) {
			c.UID = "u"
			c.Annotations = map[string]string{v1.NodeClaimTerminationTimestampAnnotationKey: text,
				v1.DoNotRepairAnnotationKey: "true"}
			c.Spec.ExpireAfter = v1.DurationOf(time.Hour)
		})
	}
	b.SetClaim(with(claimObject("a", "1"), func(c *v1.NodeClaim) { c.UID = "u" }))
	if c := b.Snapshot().Claim("a"); !c.ExpireAfter.Never || !c.Deadline.IsZero() || c.DoNotRepair {
		t.Errorf("a plain claim: %+v", c)
	}
	if got := moved(b, func() { b.SetClaim(change("2026-11-15T13:00:00Z")) }); got != "rev" {
		t.Errorf("the end of a claim: %q moved", got)
	}
	s := b.Snapshot()
	if c := s.Claim("a"); c.ExpireAfter != (cluster.NillableDuration{For: time.Hour}) || !c.Deadline.Equal(at(13, 0)) ||
		!c.DoNotRepair || len(s.Notes) != 0 {
		t.Errorf("%+v, notes %v", c, s.Notes)
	}
	b.SetClaim(change("soon"))
	s = b.Snapshot()
	want := `annotation karpenter.sh/nodeclaim-termination-timestamp: "soon" is not a time and is ignored; ` +
		`use one like 2026-01-31T12:00:00Z, or remove it`
	if c := s.Claim("a"); !c.Deadline.IsZero() || len(s.Notes) != 1 || !s.Notes[0].Warning ||
		render.Text(s.Notes[0].Text) != want {
		t.Errorf("deadline %s, notes %v", c.Deadline, s.Notes)
	}
	b.DeleteClaim("a")
	if s := b.Snapshot(); len(s.Notes) != 0 {
		t.Errorf("a claim that is gone is still talked about: %v", s.Notes)
	}
}

func TestStandaloneClaimsAreValidated(t *testing.T) {
	b, _ := newBook()
	problem := []v1.NodeSelectorRequirementWithMinValues{{Key: "karpenter.sh/made-up", Operator: "In",
		Values: []string{"x"}}}
	b.SetClaim(with(claimObject("own", "1"), func(c *v1.NodeClaim) { c.Spec.Requirements = problem }))
	b.SetClaim(with(claimObject("alone", "1"), func(c *v1.NodeClaim) { c.Spec.Requirements, c.Labels = problem, nil }))
	s := b.Snapshot()
	if got := s.Claim("own").Problems; len(got) != 0 {
		t.Errorf("a claim that we made is found fault with: %v", got)
	}
	got := s.Claim("alone").Problems
	fields := make([]string, len(got))
	for i, p := range got {
		fields[i] = p.Field
	}
	if all := strings.Join(fields, " "); !strings.Contains(all, "spec.requirements[0].key") || !strings.Contains(all,
		"spec.nodeClassRef") {
		t.Errorf("problems %v", got)
	}
}

func TestPoolValuesOfTheLifecycle(t *testing.T) {
	for _, c := range []struct {
		annotation, text string
		want             cluster.Timeouts
		problem          string
	}{
		{"tenon.sh/launch-timeout", "2m", cluster.Timeouts{Launch: 2 * time.Minute}, ""},
		{"tenon.sh/registration-timeout", "1h", cluster.Timeouts{Registration: time.Hour}, ""},
		{"tenon.sh/initialization-timeout", "90s", cluster.Timeouts{Initialization: 90 * time.Second}, ""},
		{"tenon.sh/launch-timeout", "2", cluster.Timeouts{},
			`metadata.annotations[tenon.sh/launch-timeout] "2" is not a duration of more than 0; use for instance 10m`},
		{"tenon.sh/launch-timeout", "-1m", cluster.Timeouts{}, `"-1m" is not a duration`},
		{"tenon.sh/launch-timeout", "", cluster.Timeouts{}, `"" is not a duration`},
	} {
		b, _ := newBook()
		replicas := int64(7)
		b.SetPool(with(pool("default"), func(p *v1.NodePool) {
			p.Annotations, p.Spec.Replicas = map[string]string{c.annotation: c.text}, &replicas
		}))
		p := b.Snapshot().Pool("default")
		told := ""
		for _, problem := range p.Problems {
			told += problem.Field + " " + problem.Text
		}
		if p.Timeouts != c.want || !p.Static || p.Replicas != 7 || (told == "") != (c.problem == "") ||
			!strings.Contains(told, c.problem) {
			t.Errorf("%s=%q: %+v, %d replicas, problems %q", c.annotation, c.text, p.Timeouts, p.Replicas, told)
		}
	}
	b, _ := newBook()
	b.SetPool(pool("default"))
	longer := with(pool("default"), func(p *v1.NodePool) {
		p.Annotations = map[string]string{"tenon.sh/launch-timeout": "9m"}
	})
	if got := moved(b, func() { b.SetPool(longer) }); got != "rev" {
		t.Errorf("another timeout: %q moved", got)
	}
}
