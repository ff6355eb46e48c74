package main

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
)

// sim is a simulated account and a hand on it.
type sim struct {
	t *testing.T
	*account.Account
	url string
}

func newSim(t *testing.T) *sim {
	t.Helper()
	a, err := account.New(account.Options{Cluster: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return &sim{t: t, Account: a, url: server.URL}
}

func (s *sim) run(args ...string) (string, error) {
	cmd := newEC2SimCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append(args, "--endpoint", s.url))
	err := cmd.ExecuteContext(s.t.Context())
	return out.String(), err
}

func (s *sim) must(args ...string) string {
	s.t.Helper()
	out, err := s.run(args...)
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return out
}

func TestEC2SimChangesTheAccount(t *testing.T) {
	s := newSim(t)
	before := len(s.World.Images())
	if out := s.must("ami", "publish", "al2023"); !strings.HasPrefix(out, "published al2023 v") || len(s.World.Images()) <= before {
		t.Errorf("publish said %q; %d images, before %d", out, len(s.World.Images()), before)
	}
	if out := s.must("ami", "list"); !strings.Contains(out, "amazon-eks-node-al2023-x86_64-standard-") {
		t.Errorf("list said %q", out)
	}
	s.must("capacity", "m5.large", "us-west-2a", "spot", "0")
	s.must("capacity", "reset")
	s.must("price", "m5.large", "us-west-2a", "0.5")
	s.must("price", "m5.large", "0.7")
	if price, _ := s.Prices.OnDemand("m5.large"); price != 0.7 {
		t.Errorf("the price on demand is %v", price)
	}
	s.must("deny", "ec2:CreateFleet")
	s.must("fail", "ec2:CreateFleet", "InternalError", "--status", "500", "--times", "3")
	s.must("throttle", "ec2:Describe*", "--per-second", "2", "--burst", "5")
	trouble := s.must("trouble")
	for _, want := range []string{"ec2:CreateFleet", "InternalError", `"perSecond": 2`} {
		if !strings.Contains(trouble, want) {
			t.Errorf("no %q in the trouble\n%s", want, trouble)
		}
	}
	s.must("allow", "ec2:CreateFleet")
	s.must("trouble", "--clear")
	if left := s.must("trouble"); strings.Contains(left, "InternalError") || strings.Contains(left, "ec2:CreateFleet") {
		t.Errorf("after it was cleared there is trouble\n%s", left)
	}
	if out := s.must("subnet", "list"); strings.Count(out, "us-west-2") < 3 {
		t.Errorf("subnets\n%s", out)
	}
	s.must("subnet", "free", s.Network.Private[0], "3")
	s.must("calls")
	s.must("machines")
}

func TestEC2SimSaysWhatIsWrong(t *testing.T) {
	s := newSim(t)
	for args, want := range map[string]string{
		"interrupt i-1":           "i-1",
		"interrupt --spot":        "found 0 machines, wanted 1",
		"interrupt i-1 --spot":    "give machines, or --spot",
		"capacity m5.large":       "give TYPE ZONE CAPACITY-TYPE MACHINES, or reset",
		"capacity a b c few":      `"few" is not a number of machines`,
		"price m5.large cheap":    `"cheap" is not a price`,
		"price no.such 0.1":       `no instance type "no.such"`,
		"ami publish ubuntu":      `publishing images of "ubuntu"`,
		"deny CreateFleet":        `"CreateFleet" is not SERVICE:ACTION`,
		"fail ec2:CreateFleet":    "a fault needs a code",
		"shift us-west-2a":        "us-west-2a",
		"serve --port 4566":       "--port is for --alone",
		"machines --endpoint zzz": `--endpoint: "zzz" is not a URL`,
	} {
		fields := strings.Fields(args)
		cmd := newEC2SimCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if !strings.Contains(args, "--endpoint") {
			fields = append(fields, "--endpoint", s.url)
		}
		cmd.SetArgs(fields)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
	}
	cmd := newEC2SimCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"machines", "--dir", t.TempDir()})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "tenon lab up --cloud aws") {
		t.Errorf("without a lab: %v", err)
	}
}

func TestLabRefusesSettingsOfAnotherCloud(t *testing.T) {
	for args, want := range map[string]string{
		"up --cloud gcp":            `--cloud: "gcp" is not one of kwok, aws`,
		"up --boot 1s":              "--boot is for --cloud aws",
		"up --cluster-name=mine":    "--cluster-name is for --cloud aws",
		"up --cloud aws --boot now": "invalid argument",
	} {
		cmd := newLabCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(args))
		cmd.SetOut(&bytes.Buffer{})
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
	}
}
