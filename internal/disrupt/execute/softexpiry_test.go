package execute_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Which nodes are replaced because they come to their end, and when the plan looks again: n1 is to go in the last hour
// of its life, of which half an hour is left.
func TestWhichNodesComeToTheirEnd(t *testing.T) {
	begins := "fence/n1; begin n1 $4"
	for _, c := range []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"it has come", func(f *disrupttest.Fleet) {}, begins},
		{"its pool wants no soft end", func(f *disrupttest.Fleet) { f.Pool.Overrides.SoftExpiry = 0 }, ""},
		{"its pool is being deleted", func(f *disrupttest.Fleet) { f.Pool.Deleting = true }, ""},
		{"its pool is static", func(f *disrupttest.Fleet) {
			f.Pool.Static, f.Pool.Replicas, f.O.Static = true, 2, true
		}, ""},
		{"it never ends", func(f *disrupttest.Fleet) { f.Claim("n1").ExpireAfter.Never = true }, ""},
		{"it is being deleted", func(f *disrupttest.Fleet) { f.Claim("n1").Deleting = f.Now }, ""},
		{"it has two hours more, and is being deleted", func(f *disrupttest.Fleet) {
			f.Claim("n1").ExpireAfter.For += 2 * time.Hour
			f.Claim("n1").Deleting = f.Now
		}, ""},
		{"it has two hours more", func(f *disrupttest.Fleet) { f.Claim("n1").ExpireAfter.For += 2 * time.Hour },
			"look again in 1h45m18s"},
		{"people keep it", func(f *disrupttest.Fleet) { f.Host("n1").DoNotDisrupt = true }, ""},
		{"it rests", func(f *disrupttest.Fleet) {
			f.Claim("n1").RestUntil = f.Now.Add(7 * time.Minute)
		}, "look again in 7m0s"},
		{"the plan deletes it", func(f *disrupttest.Fleet) {
			f.O.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
		}, ""},
		{"the budget allows none", func(f *disrupttest.Fleet) {
			f.Pool.Budgets = []cluster.Budget{{Active: true}}
		}, ""},
		{"the budget allows one, and n2 ends before it", func(f *disrupttest.Fleet) {
			f.Single()
			f.Claim("n2").UID = f.Claim("n1").UID
			f.Claim("n2").ExpireAfter.For = f.Claim("n1").ExpireAfter.For - 10*time.Minute
		}, "fence/n2; begin n2 $2; eager"},
		{"the budget allows one, and n2 ends after it", func(f *disrupttest.Fleet) {
			f.Single()
			f.Claim("n2").UID = f.Claim("n1").UID
			f.Claim("n2").ExpireAfter.For = f.Claim("n1").ExpireAfter.For + 10*time.Minute
		}, begins + "; eager"},
	} {
		f := disrupttest.FleetOf("large: medium:; n1 stirred 2h")
		f.Pool.Overrides.SoftExpiry = time.Hour
		f.Claim("n1").ExpireAfter = cluster.NillableDuration{For: 3*time.Hour + 30*time.Minute}
		c.change(f)
		if got := done(f, "start"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
