//go:build !windows

package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/sigv4"
	"github.com/tenon-sh/tenon/internal/lab/labaws"
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
	if out := s.must("ami", "publish", "al2023"); !strings.HasPrefix(out, "published al2023 v") ||
		len(s.World.Images()) <= before {
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

// simMachines runs "ec2sim machines" with nothing but these arguments.
func simMachines(t *testing.T, args ...string) error {
	t.Helper()
	cmd := newEC2SimCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(io.Discard)
	cmd.SetArgs(append([]string{"machines"}, args...))
	return cmd.ExecuteContext(t.Context())
}

// A shell that has sourced the variables of an account needs no flags.
func TestEC2SimFindsTheAccountOfTheShell(t *testing.T) {
	s := newSim(t)
	t.Chdir(t.TempDir()) // no .lab here
	t.Setenv(labaws.DirVariable, "")
	t.Setenv(endpointVariable, s.url)
	if err := simMachines(t); err != nil {
		t.Errorf("with %s: %v", endpointVariable, err)
	}
	if err := simMachines(t, "--dir", "elsewhere"); err == nil || !strings.Contains(err.Error(),
		"the lab in elsewhere") {
		t.Errorf("a flag counts more than the variables: %v", err)
	}
	t.Setenv(endpointVariable, "https://ec2.example.com")
	if err := simMachines(t); err == nil || !strings.Contains(err.Error(), "the lab in .lab") {
		t.Errorf("another's endpoint is not asked: %v", err)
	}
	t.Setenv(endpointVariable, s.url)
	t.Setenv(labaws.DirVariable, "/mine/lab")
	if err := simMachines(t); err == nil || !strings.Contains(err.Error(), "the lab in /mine/lab") {
		t.Errorf("with %s: %v", labaws.DirVariable, err)
	}
}

func TestEC2SimSaysWhatIsWrong(t *testing.T) {
	s := newSim(t)
	for args, want := range map[string]string{
		"interrupt i-1":           "i-1",
		"interrupt --spot":        "there are 0 spot instances that run, not 1",
		"interrupt i-1 --spot":    "only one of these at a time",
		"capacity m5.large":       "give TYPE ZONE CAPACITY-TYPE MACHINES, or reset",
		"capacity a b c few":      `"few" is not a number of machines`,
		"price m5.large cheap":    `"cheap" is not a price`,
		"price no.such 0.1":       `no instance type "no.such"`,
		"price m5.tiny 0.1":       "of m5 there are m5.12xlarge, m5.16xlarge",
		"ami publish ubuntu":      `publishing images of "ubuntu"`,
		"deny CreateFleet":        `"CreateFleet" is not SERVICE:ACTION`,
		"fail ec2:CreateFleet":    "a fault needs a code",
		"shift us-west-2a":        "us-west-2a",
		"shift usw2-az1 --for=0s": "--for: 0s is no time",
		"shift usw2-az1 --end":    "there is none",
		"shift usw2-az9 --end":    "usw2-az1",

		"capacity m9.nope us-west-2a spot 0":       `no instance type "m9.nope"; families that begin with m are`,
		"capacity m5.large mars spot 0":            `no zone "mars"; there are us-west-2a, us-west-2b`,
		"capacity m5.large us-west-2a sport 0":     `no capacity type "sport"; there are spot, on-demand`,
		"deny ec2:NoSuchThing":                     `ec2 has no action "NoSuchThing"; it has CreateFleet`,
		"deny ec3:CreateFleet":                     `no service "ec3"; there are arc-zonal-shift, ec2`,
		"allow ec2:CreateFleet":                    `nobody has denied "ec2:CreateFleet"; denied are: none`,
		"fail ec2:NoSuchThing Oops":                `no action "NoSuchThing"`,
		"fail ec2:CreateFleet Oops --status 200":   "200 is not the HTTP status of an error",
		"fail ec2:CreateFleet Oops --times -1":     "-1 is not a number of times",
		"fail ec2:CreateFleet --delay -1s":         "less than none",
		"throttle ec2:X":                           `no action "X"`,
		"throttle ec2:CreateFleet --per-second=-1": "neither may be less than 0",
		"subnet remove nope":                       "'nope' does not exist; there are: subnet-",
		"subnet free nope 1":                       "'nope' does not exist; there are: subnet-",
		"subnet restore nope":                      `no subnet "nope" was removed; removed are: none`,
		"snapshot add hello 1":                     "InvalidSnapshotID.Malformed",
		"snapshot add snap-0123456789abcdef0 0":    "at least 1 GiB",
		"ami remove ami-nope":                      "does not exist; there are: ami-",
		"ami deprecate ami-nope":                   "does not exist",
		"interrupt": `name machines (i-… or their nodes), or give --spot; ` +
			`"tenon ec2sim machines" lists them`,
		"kill":                                      "or give --spot or --on-demand",
		"kill --spot --on-demand":                   "only one of these at a time",
		"kill --spot=0":                             "--spot: 0 is not a number of instances",
		"schedule --spot --event=party":             `no event "party"; there are instance-reboot`,
		"credentials expire":                        "the key of DIR/aws.env is static",
		"credentials remove AKIANOBODY":             `no key "AKIANOBODY"; there are: AKIASIMULATED0000000`,
		"credentials restore":                       "no key was removed",
		"serve --alone --region mars-1":             `no region "mars-1"; there are`,
		"serve --alone --boot=-1s":                  "--boot: -1s is less than 0",
		"serve --port 4566":                         "--port is for --alone",
		"snapshot add snap-0123456789abcdef0 99999": "at most 65536",
		"capacity m5.large us-west-2a spot -1":      "-1 is less than 0",
		"price m5.large us-west-2a -0.5":            "-0.5 is less than 0",
		"subnet free subnet-1 -1":                   "-1 is less than 0",
		"snapshot add snap-0123456789abcdef0 -5":    "-5 is less than 0",
		"machines -x":                               "unknown shorthand flag: 'x'",
		"price m5.large us-west-2a NaN":             `"NaN" is not a price`,
		"price m5.large us-west-2a Inf":             `"Inf" is not a price`,
		"reservation add m5.large us-west-2a few":   `"few" is not a number of instances`,
		"reservation add m5.large us-west-2a 0":     `"0" is not a number of instances; use 1 or more`,
		"reservation add m5.large us-west-2a -1":    "-1 is less than 0",
		"reservation add m5.tiny us-west-2a 1":      "of m5 there are m5.12xlarge",
		"reservation add m5.large mars 1":           `no zone "mars"; there are us-west-2a`,
		"reservation remove cr-1":                   "'cr-1' does not exist; there are: none",
		"reservation interrupt cr-1":                "'cr-1' does not exist; there are: none",
		"placementgroup add near close":             `no strategy "close"; there are cluster, spread, partition`,
		"placementgroup remove near":                "'near' is unknown; there are: none",

		"reservation add m5.large us-west-2a 1 --for 0s":        "--for: 0s is no time",
		"reservation add m5.large us-west-2a 1 --platform BeOS": `no platform "BeOS"; there are Linux/UNIX`,
		"reservation add m5.large us-west-2a 1 --tag team":      "team must be formatted as key=value",
		"placementgroup add near cluster --partitions 3":        "a group of the strategy cluster has no partitions",
		"placementgroup add apart partition --partitions 8":     "can't have 8 partitions; use 1 to 7",
		"placementgroup add apart partition --partitions 0":     "can't have 0 partitions; use 1 to 7",

		"machines --endpoint zzz": `--endpoint: "zzz" is not a URL`,
	} {
		fields := strings.Fields(args)
		cmd := newEC2SimCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if !strings.Contains(args, "--endpoint") {
			fields = append(fields, "--endpoint", s.url)
		}
		cmd.SetArgs(fields)
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "the simulator refused") {
			t.Errorf("%s: %v tells of the panel", args, err)
		}
	}
	cmd := newEC2SimCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"machines", "--dir", t.TempDir()})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(),
		"tenon lab up --cloud aws") {
		t.Errorf("without a lab: %v", err)
	}
}

func TestLabRefusesSettingsOfAnotherCloud(t *testing.T) {
	for args, want := range map[string]string{
		"up --cloud gcp":            `--cloud: "gcp" is not one of kwok, aws`,
		"up --boot 1s":              "--boot is for --cloud aws",
		"up --cluster-name=mine":    "--cluster-name is for --cloud aws",
		"up --cloud aws --boot now": "invalid argument",

		"up --cloud aws --boot=-1s":          "--boot: -1s is less than 0",
		"up --cloud aws --join=-1s":          "--join: -1s is less than 0",
		"up --cloud aws --shutdown=-1s":      "--shutdown: -1s is less than 0",
		"up --cloud aws --spot-warning=0s":   "--spot-warning: 0s is no warning",
		"up --cloud aws --cluster-name=":     `--cluster-name: "" is not the name of a cluster`,
		"up --cloud aws --cluster-name=A_b!": `--cluster-name: "A_b!" is not the name of a cluster`,
		"up --cloud aws --region=mars-1":     `--region: there is no region "mars-1"; there are`,
	} {
		cmd := newLabCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append(strings.Fields(args), "--dir", t.TempDir()))
		cmd.SetOut(&bytes.Buffer{})
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
	}
}

// A key is taken away and put back, a session ends, and a subnet comes back as it was.
func TestEC2SimUndoes(t *testing.T) {
	s := newSim(t)
	if out := s.must("credentials", "remove"); out != "removed: "+s.Key.ID+"\n" {
		t.Errorf("remove said %q", out)
	}
	if _, known := s.Keys.Lookup(s.Key.ID); known {
		t.Error("the key is still known")
	}
	if out := s.must("credentials", "list"); !strings.Contains(out, s.Key.ID+"  removed") {
		t.Errorf("list said %q", out)
	}
	if _, err := s.run("credentials", "remove"); err == nil || !strings.Contains(err.Error(), "no static key is left") {
		t.Errorf("removing again: %v", err)
	}
	if out := s.must("credentials", "restore"); out != "restored: "+s.Key.ID+"\n" {
		t.Errorf("restore said %q", out)
	}
	if key, known := s.Keys.Lookup(s.Key.ID); !known || key != s.Key {
		t.Errorf("restored was %+v, %v", key, known)
	}
	s.Keys.Put(sigv4.Key{ID: "ASIASESSION", Secret: "s", Token: "t", Expires: time.Now().Add(time.Hour)})
	if out := s.must("credentials", "expire"); out != "expired: 1\n" {
		t.Errorf("expire said %q", out)
	}
	if out := s.must("credentials", "list"); !strings.Contains(out, "ASIASESSION") || !strings.Contains(out,
		"expired") {
		t.Errorf("list said %q", out)
	}
	if _, err := s.run("credentials", "expire"); err == nil {
		t.Error("what has expired can expire again")
	}
	before := s.must("subnet", "list")
	s.must("subnet", "remove", s.Network.Private[0])
	if s.must("subnet", "list") == before {
		t.Error("the subnet is still there")
	}
	s.must("subnet", "restore", s.Network.Private[0])
	if after := s.must("subnet", "list"); after != before || len(s.World.Tags(s.Network.Private[0])) == 0 {
		t.Errorf("restored, the subnets are\n%s, before\n%s", after, before)
	}
	s.must("snapshot", "add", "snap-0123456789abcdef0", "50")
}

// Reservations and placement groups are made, listed as they were made, and removed.
func TestEC2SimReserves(t *testing.T) {
	s := newSim(t)
	id := strings.TrimSpace(s.must("reservation", "add", "m5.large", "us-west-2a", "2", "--tag", "team=blue", "--tag",
		"stage=test"))
	win := strings.TrimSpace(s.must("reservation", "add", "m5.large", "us-west-2b", "1", "--platform", "Windows",
		"--targeted", "--for", "24h"))
	lines := strings.Split(s.must("reservation", "list"), "\n")
	for _, want := range [][]string{
		{id, "active", "m5.large", "us-west-2a", "2", "2", "Linux/UNIX", "default", "open", "never",
			"stage=test,team=blue"},
		{win, "active", "m5.large", "us-west-2b", "1", "1", "Windows", "default", "targeted"},
	} {
		if !slices.ContainsFunc(lines, func(line string) bool {
			got := strings.Fields(line)
			return len(got) >= len(want) && slices.Equal(got[:len(want)], want)
		}) {
			t.Errorf("no %v in\n%s", want, strings.Join(lines, "\n"))
		}
	}
	s.must("reservation", "interrupt", id)
	s.must("reservation", "remove", id, win)
	if out := s.must("reservation", "list"); strings.Count(out, "cancelled") != 2 {
		t.Errorf("removed, they are\n%s", out)
	}

	near := strings.TrimSpace(s.must("placementgroup", "add", "near", "cluster", "--tag", "team=blue"))
	s.must("placementgroup", "add", "apart", "partition")
	s.must("placementgroup", "add", "spread", "spread")
	out := s.must("placementgroup", "list")
	for _, want := range []string{near + "  near    cluster    0           0         team=blue", "apart   partition  7",
		"spread  spread     0"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if _, err := s.run("placementgroup", "add", "near", "spread"); err == nil || !strings.Contains(err.Error(),
		`a placement group "near" already`) {
		t.Errorf("the same name again: %v", err)
	}
	s.must("placementgroup", "remove", near, "apart")
	if out := s.must("placementgroup", "list"); strings.Contains(out, "near") || strings.Contains(out, "apart") ||
		!strings.Contains(out, "spread") {
		t.Errorf("two removed, there are\n%s", out)
	}
}
