package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/metrics"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

// Claims in tests.
const (
	claimA = "00000000-0000-4000-8000-00000000000a"
	claimB = "40000000-0000-4000-8000-00000000000b"
)

// reply is what EC2 answers to one call for launches.
type reply func(*ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error)

// launcher is an EC2 that answers one call after the other, the last reply again and again. It notes when it was
// called, and for how many of which types in which subnets.
type launcher struct {
	everyCall
	replies []reply
	calls   []string
	mu      sync.Mutex
	// began is when it may be called first, last when it was called last.
	began, last time.Time
	shown       []ec2types.Instance
	// tagged is how many tags were written.
	tagged int
	// create, if it is there, is what happens when a template is created.
	create func(context.Context) error
}

func (l *launcher) CreateFleet(_ context.Context, in *ec2.CreateFleetInput,
	_ ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	var lines []string
	for _, c := range in.LaunchTemplateConfigs {
		for _, o := range c.Overrides {
			lines = append(lines, string(o.InstanceType)+"@"+*o.SubnetId)
		}
	}
	at := min(len(l.calls), len(l.replies)-1)
	l.last = time.Now()
	l.calls = append(l.calls,
		fmt.Sprintf("%s: %d of %s", time.Since(l.began), *in.TargetCapacitySpecification.TotalTargetCapacity,
			strings.Join(lines, " ")))
	return l.replies[at](in)
}

func (l *launcher) CreateTags(context.Context, *ec2.CreateTagsInput, ...func(*ec2.Options)) (*ec2.CreateTagsOutput,
	error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tagged++
	return &ec2.CreateTagsOutput{}, nil
}

func (l *launcher) DescribeLaunchTemplates(context.Context, *ec2.DescribeLaunchTemplatesInput,
	...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	return &ec2.DescribeLaunchTemplatesOutput{}, nil
}

func (l *launcher) CreateLaunchTemplate(ctx context.Context, _ *ec2.CreateLaunchTemplateInput,
	_ ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error) {
	if l.create != nil {
		if err := l.create(ctx); err != nil {
			return nil, err
		}
	}
	return &ec2.CreateLaunchTemplateOutput{}, nil
}

func (l *launcher) DescribeInstances(context.Context, *ec2.DescribeInstancesInput,
	...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return &ec2.DescribeInstancesOutput{Reservations: []ec2types.Reservation{{Instances: l.shown}}}, nil
}

// sells answers with instances of a type; short adds that the others of it are sold out.
func sells(kind string, ids ...string) reply {
	return func(*ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error) {
		return &ec2.CreateFleetOutput{Instances: []ec2types.CreateFleetInstance{{InstanceIds: ids,
			InstanceType: ec2types.InstanceType(kind),
			LaunchTemplateAndOverrides: &ec2types.LaunchTemplateAndOverridesResponse{
				Overrides: &ec2types.FleetLaunchTemplateOverrides{SubnetId: new("subnet-1")}}}}}, nil
	}
}

func short(kind string, of reply) reply {
	return func(in *ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error) {
		out, err := of(in)
		out.Errors = append(out.Errors,
			ec2types.CreateFleetError{ErrorCode: new("InsufficientInstanceCapacity"), ErrorMessage: new("none"),
				LaunchTemplateAndOverrides: &ec2types.LaunchTemplateAndOverridesResponse{
					Overrides: &ec2types.FleetLaunchTemplateOverrides{InstanceType: ec2types.InstanceType(kind),
						SubnetId: new("subnet-1")}}})
		return out, err
	}
}

// refuses answers with an error of the whole call.
func refuses(code, message string) reply {
	return func(*ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error) {
		return nil, &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet",
			Err: &smithy.GenericAPIError{Code: code, Message: message}}
	}
}

// spacious has two subnets in zone a, of which the first has more room.
type spacious struct{ Network }

func (spacious) Subnets(context.Context, *awsv1.EC2NodeClass) ([]network.Subnet, error) {
	return []network.Subnet{{ID: "subnet-1", Zone: "a", FreeIPs: 500, ReadAt: time.Now()},
		{ID: "subnet-2", Zone: "a", FreeIPs: 100, ReadAt: time.Now()}}, nil
}

func (spacious) ForgetSubnet(string) {}

// launching is a provider that can do nothing but launch.
func launching(api *launcher) *Launcher {
	api.began = time.Now()
	register := ownership.NewRegister()
	p := New(Options{EC2: api, Network: spacious{}, ClusterName: "lab", Register: register,
		Templates: template.NewStore(api, time.Now), Wait: Sleep, Now: time.Now,
		Instances: ownership.NewInstances(register, ownership.Options{EC2: api, ClusterName: "lab", Now: time.Now})})
	return p
}

// What becomes of launches, by what EC2 answers: who gets what, who is asked for again, with what and when, and what is
// told to the others.
func TestWhatBecomesOfLaunches(t *testing.T) {
	const gone = "InvalidLaunchTemplateName.NotFoundException"
	first := func(calls int, of string) []string {
		out := []string{}
		for i, wait := range []time.Duration{0, 200, 600, 1400, 3000}[:calls] {
			if out = append(out, fmt.Sprintf("%s: %s", wait*time.Millisecond, of)); of == "" {
				out[i] = ""
			}
		}
		return out
	}
	for _, c := range []struct {
		name    string
		wishes  [][]string // types that the claims a, b… may have
		replies []reply
		change  func(*launcher, *Launcher, []*Request)
		calls   []string
		want    []string // by claim: its instance and what others were refused, or a part of the error
		lost    bool     // it is not known what was launched
		tries   int      // of the first claim: launches that gave it nothing
	}{
		{"all is there", [][]string{{"m", "n"}, {"m", "n"}}, []reply{sells("m", "i-2", "i-1")}, nil,
			[]string{"0s: 2 of m@subnet-1 n@subnet-1"}, []string{"i-1 []", "i-2 []"}, false, 0},
		{"one is short of a type", [][]string{{"m", "n"}, {"m", "n"}},
			[]reply{short("m", sells("m", "i-1")), sells("n", "i-2")}, nil,
			[]string{"0s: 2 of m@subnet-1 n@subnet-1"}, []string{"i-1 [m]",
				"EC2 refused 1 offerings: launching instances: ec2:CreateFleet: InsufficientInstanceCapacity"}, false,
			0},
		{"one could have more than what both have", [][]string{{"m", "n"}, {"m", "n", "o"}},
			[]reply{short("n", short("m", sells("m", "i-1"))), sells("o", "i-2")}, nil,
			[]string{"0s: 2 of m@subnet-1 n@subnet-1", "0s: 1 of o@subnet-1"}, []string{"i-1 [m n]",
				"i-2 [m n]"}, false, 0},
		{"two launches, of which one is asked for again", [][]string{{"a", "b", "c"}, {"b"}},
			[]reply{sells("a", "i-1"), refuses(gone, "no lt"), sells("b", "i-2")}, nil,
			[]string{"0s: 1 of a@subnet-1 b@subnet-1 c@subnet-1", "0s: 1 of b@subnet-1",
				"200ms: 1 of b@subnet-1"}, []string{"i-1 []", "i-2 []"}, false, 0},
		{"nothing, and no reason", [][]string{{"m"}}, []reply{sells("m")}, nil, []string{"0s: 1 of m@subnet-1"},
			[]string{"does not say why"}, false, 1},
		{"a subnet is gone", [][]string{{"m"}},
			[]reply{refuses("InvalidSubnetID.NotFound", "no subnet-1"), sells("m", "i-1")}, nil,
			[]string{"0s: 1 of m@subnet-1", "0s: 1 of m@subnet-2"}, []string{"i-1 []"}, false, 1},
		{"a subnet that is not named is gone", [][]string{{"m"}},
			[]reply{refuses("InvalidSubnetID.NotFound", "no such subnet")}, nil,
			[]string{"0s: 1 of m@subnet-1"}, []string{"InvalidSubnetID.NotFound"}, false, 1},
		{"a launch template is gone", [][]string{{"m"}},
			[]reply{refuses(gone, "no lt"), refuses(gone, "no lt"), sells("m", "i-1")}, nil,
			first(3, "1 of m@subnet-1"), []string{"i-1 []"}, false, 2},
		{"a launch template is gone again and again", [][]string{{"m"}}, []reply{refuses(gone, "no lt")}, nil,
			first(5, "1 of m@subnet-1"), []string{gone}, false, 5},
		{"a launch template is gone, then a subnet", [][]string{{"m"}},
			[]reply{refuses(gone, "no lt"), refuses("InvalidSubnetID.NotFound", "no subnet-1"), sells("m", "i-1")}, nil,
			[]string{"0s: 1 of m@subnet-1", "200ms: 1 of m@subnet-1",
				"200ms: 1 of m@subnet-2"}, []string{"i-1 []"}, false, 2},
		{"a launch template is gone and can't be made", [][]string{{"m"}}, []reply{refuses(gone, "no lt")},
			func(l *launcher, _ *Launcher, _ []*Request) {
				l.create = func(context.Context) error { return errors.New("no more templates") }
			}, first(1, "1 of m@subnet-1"), []string{gone}, false, 1},
		{"nothing is left of it", [][]string{{"m"}, {"m"}}, []reply{refuses("InsufficientInstanceCapacity", "none")},
			nil,
			[]string{"0s: 2 of m@subnet-1"}, []string{"InsufficientInstanceCapacity",
				"InsufficientInstanceCapacity"}, false, 1},
		{"the class is wrong", [][]string{{"m"}}, []reply{refuses("InvalidParameterValue", "bad")}, nil,
			[]string{"0s: 1 of m@subnet-1"}, []string{"InvalidParameterValue"}, false, 1},
		{"it may not be asked for", [][]string{{"m"}}, []reply{refuses("UnauthorizedOperation", "no")}, nil,
			[]string{"0s: 1 of m@subnet-1"},
			[]string{"launching instances for NodePool general (1 at once): ec2:CreateFleet: UnauthorizedOperation"},
			false, 0},
		{"the answer is lost", [][]string{{"m"}}, []reply{refuses("InternalError", "oops")}, nil,
			first(3, "1 of m@subnet-1"), []string{"InternalError"}, true, 0},

		{"a process before asked in other words", [][]string{{"m"}},
			[]reply{refuses("IdempotentParameterMismatch", "another")}, nil,
			[]string{"0s: 1 of m@subnet-1"}, []string{"IdempotentParameterMismatch"}, false, 0},
		{"this process asked in other words", [][]string{{"m"}},
			[]reply{refuses("IdempotentParameterMismatch", "another"), sells("m", "i-1")},
			func(api *launcher, p *Launcher, _ []*Request) {
				// All that a process before may have launched has been seen.
				_ = p.o.Instances.Lead(context.Background())
				time.Sleep(ownership.SettledAfter)
				_, _ = p.o.Instances.Scan(context.Background())
				api.began = time.Now()
			}, []string{"0s: 1 of m@subnet-1",
				"10ms: 1 of m@subnet-1"}, []string{"i-1 []"}, false, 1},

		{"one is part of another launch", [][]string{{"m"}, {"m"}}, []reply{sells("m", "i-1")},
			func(_ *launcher, p *Launcher, list []*Request) {
				p.o.Register.NoteLost(p.o.Register.BeginLaunch("lab", []ownership.Claim{list[0].owner()}),
					errors.New("lost"),
					p.o.Now(), p.o.Now())
			}, []string{"0s: 1 of m@subnet-1"}, []string{"part of another launch", "i-1 []"}, true, 0},
		{"all have got instances", [][]string{{"m"}}, nil, func(_ *launcher, p *Launcher, list []*Request) {
			of := p.o.Register.BeginLaunch("lab", []ownership.Claim{list[0].owner()})
			p.o.Register.AssignLaunched(of, []string{"i-9"}, func(string, ownership.Claim) *cloudprovider.Instance {
				return nil
			}, p.o.Now())
		}, nil, []string{"part of another launch"}, false, 0},
		{"a look finds its instance first", [][]string{{"m"}}, []reply{sells("m")},
			func(l *launcher, p *Launcher, list []*Request) {
				l.replies[0] = func(*ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error) {
					marks := ownership.ClaimTags([]ownership.Claim{{UID: claimA}})[ownership.ClaimsTagKey]
					l.shown = []ec2types.Instance{{InstanceId: new("i-9"), Tags: []ec2types.Tag{
						{Key: new(awsv1.NodeClaimTagKey), Value: new("a")},
						{Key: new(ownership.ClaimsTagKey), Value: &marks}}}}
					_, _ = p.o.Instances.Scan(context.Background())
					l.last = time.Now()
					return &ec2.CreateFleetOutput{}, nil
				}
			}, []string{"0s: 1 of m@subnet-1"}, []string{"part of another launch"}, false, 0},
		{"there is no room to mark two", [][]string{{"m"}, {"m"}}, []reply{sells("m", "i-1"), sells("m", "i-2")},
			func(_ *launcher, _ *Launcher, list []*Request) {
				for _, q := range list {
					for i := range 46 {
						q.spec.Tags[fmt.Sprint("tag", i)] = "x"
					}
				}
			}, []string{"0s: 1 of m@subnet-1", "0s: 1 of m@subnet-1"}, []string{"i-1 []", "i-2 []"}, false, 0},
		{"no subnet has room", [][]string{{"m"}}, nil, func(_ *launcher, p *Launcher, _ []*Request) {
			p.subnets.avoid("subnet-1")
			p.subnets.avoid("subnet-2")
		}, nil, []string{"no subnet of EC2NodeClass"}, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := &launcher{replies: c.replies}
			p := launching(api)
			registry := prometheus.NewRegistry()
			var err error
			if p.o.Metrics, err = metrics.New(registry); err != nil {
				t.Fatal(err)
			}
			var list []*Request
			for i, kinds := range c.wishes {
				q := wisher([]string{claimA, claimB}[i], kinds...)
				q.claim.Name, q.spec.Pool = string(rune('a'+i)), "general"
				q.spec.class, q.spec.Tags = &awsv1.EC2NodeClass{}, map[string]string{}
				q.spec.templates["lt"].Tags = map[string]string{}
				list = append(list, q)
			}
			if c.change != nil {
				c.change(api, p, list)
			}
			if len(c.calls) == 1 {
				p.limiter = noTurns() // the first call has had its turn
			}
			answers := p.launchTogether(t.Context(), "key", slices.Clone(list))
			if len(answers) != len(list) || len(api.calls) > 0 && time.Now() != api.last {
				t.Errorf("%s: %d answers %s after the last call", c.name, len(answers), time.Since(api.last))
			}
			for i, a := range answers {
				got := ""
				if a.Err != nil {
					got = a.Err.Error()
				} else if held := p.o.Register.InstanceOf(
					list[i].claim.UID); a.Value.ProviderID == held.CreateAnswer.ProviderID {
					var kinds []string
					for _, ref := range a.Value.Refused {
						kinds = append(kinds, ref.Type)
					}
					got = held.ID + " " + fmt.Sprint(kinds)
				}
				if got != c.want[i] && (a.Err == nil || !strings.Contains(got, c.want[i])) {
					t.Errorf("%s: claim %d gets %q, want %q", c.name, i, got, c.want[i])
				}
			}
			if !slices.Equal(api.calls, c.calls) {
				t.Errorf("%s: called %q, want %q", c.name, api.calls, c.calls)
			}
			lost := false
			for _, q := range list {
				of, underWay := p.o.Register.LaunchOf(q.claim.UID)
				if lost = lost || of != nil; underWay != nil {
					t.Errorf("%s: the call is still under way", c.name)
				}
			}
			if tries := refusedTimes(t, p.o.Register, claimA); lost != c.lost || tries != c.tries {
				t.Errorf("%s: it is not known what was launched: %t; %d launches have given the claim nothing, want %d",
					c.name, lost, tries, c.tries)
			}
			gathered := callsNoted(t, registry)
			if want := fmt.Sprint("create_fleet ", time.Since(api.began), " ",
				len(list)); gathered != want || p.pace.underWay() != 0 || len(p.subnets.pending) != 0 {
				t.Errorf("%s: %s was noted, %d are under way, %v addresses are kept", c.name, gathered,
					p.pace.underWay(), p.subnets.pending)
			}
		})
	}
}

// refusedTimes is how many launches have given the claim nothing. The token of its next launch tells.
func refusedTimes(t *testing.T, register *ownership.Register, uid types.UID) int {
	t.Helper()
	ended := 0
	if a := register.InstanceOf(uid); a != nil {
		register.Forget(a.ID, time.Now())
		ended = 1
	}
	if of, _ := register.LaunchOf(uid); of != nil {
		register.UndoLaunch(of)
	}
	next := register.BeginLaunch("lab", []ownership.Claim{{UID: uid}})
	for n := range 20 {
		if ownership.NewLaunch("lab", next.Claims, func(types.UID) int { return n }).Token == next.Token {
			return n - ended
		}
	}
	t.Fatalf("the token of %s is of no number of launches", uid)
	return 0
}

// callsNoted is what calls were made for several at once, how long they took, and for how many they were.
func callsNoted(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums, what := map[string]float64{}, ""
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				sums[family.GetName()], what = h.GetSampleSum(), m.GetLabel()[0].GetValue()
			}
		}
	}
	const prefix = "karpenter_cloudprovider_batcher_batch_"
	return fmt.Sprint(what, " ", time.Duration(sums[prefix+"time_seconds"]*float64(time.Second)).
		Round(time.Microsecond),
		" ", sums[prefix+"size"])
}

// Instances that were launched together have no names yet; one that was launched alone has. Their addresses count at
// once.
func TestWhatIsNotedOfLaunches(t *testing.T) {
	for together, names := range map[int]int{1: 0, 2: 2} {
		synctest.Test(t, func(t *testing.T) {
			api := &launcher{replies: []reply{sells("m", []string{"i-1", "i-2"}[:together]...)}}
			p := launching(api)
			var list []*Request
			for i := range together {
				q := wisher([]string{claimA, claimB}[i], "m")
				q.claim.Name = string(rune('a' + i))
				q.spec.class, q.spec.Tags = &awsv1.EC2NodeClass{}, map[string]string{}
				list = append(list, q)
			}
			p.launchTogether(t.Context(), "key", list)
			a := p.o.Register.AssignmentOf("i-1")
			if synctest.Wait(); api.tagged != names || a.LaunchedAt != time.Now() {
				t.Errorf("of %d instances %d were named, and the first is %+v", together, api.tagged, a)
			}
			if n := len(p.subnets.taken["subnet-1"]); n != 1 {
				t.Errorf("addresses were taken %d times", n)
			}
		})
	}
}

// A launch that EC2 refuses as a whole is counted, for each zone that it asked for.
func TestRefusedLaunchesAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	counted, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	p := launching(&launcher{replies: []reply{refuses("UnauthorizedOperation", "no")}})
	p.o.Metrics = counted
	q := wisher(claimA, "m", "n")
	q.spec.class, q.spec.Tags, q.spec.CapacityType = &awsv1.EC2NodeClass{}, map[string]string{}, "spot"
	q.spec.class.Status.Subnets = []awsv1.Subnet{{ID: "subnet-1", Zone: "a", ZoneID: "az1"}}
	p.launchTogether(t.Context(), "key", []*Request{q})
	const name = "karpenter_cloudprovider_instance_launch_failures_total"
	want := strings.NewReader("# HELP " + name + " Offerings that EC2 refused to launch, by the reason.\n# TYPE " +
		name + " counter\n" +
		name + `{capacity_type="spot",reason="Unauthorized",zone="a",zone_id="az1"} 1` + "\n")
	if err := testutil.GatherAndCompare(registry, want, name); err != nil {
		t.Error(err)
	}
}

// A pause ends when its time is over, or when nobody waits for it any more.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if Sleep(t.Context(), time.Second); time.Since(began) != time.Second {
			t.Errorf("it took %s", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if Sleep(ctx, time.Hour); time.Since(began) != 2*time.Second {
			t.Errorf("for whom a second was left it took %s", time.Since(began)-time.Second)
		}
	})
}
