package operator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	awsv1alpha1 "github.com/tenon-sh/tenon/api/aws/v1alpha1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// twoClouds are one that a setting chooses and one that is used without. They have the names and kinds of those in this
// repository, which can't be imported here.
func twoClouds() []Cloud {
	var name string
	var isolated bool
	build := func(context.Context, *Host) (cloudprovider.Provider, error) {
		return nil, errors.New("there is no such cloud")
	}
	return []Cloud{{
		Name: "aws",
		Kinds: Kinds{AddToScheme: awsv1.AddToScheme,
			NodeClasses: []schema.GroupVersionKind{awsv1.GroupVersion().WithKind(awsv1.Kind)}},
		Settings: Settings{
			Register: func(f *pflag.FlagSet) {
				f.StringVar(&name, "cluster-name", "", "")
				f.BoolVar(&isolated, "isolated-vpc", false, "")
			},
			Validate: func() error {
				if name == "" {
					return errors.New("--cluster-name is empty")
				}
				return nil
			},
			ChosenBy: "cluster-name", FeatureGates: []string{"ReservedCapacity"},
			Gates: NewGates("aws-feature-gates", "", map[string]bool{"NodeClassCEL": false}),
		},
		Labels: func() Labels {
			return Labels{WellKnown: []string{awsv1.InstanceFamilyLabelKey}, RestrictedDomains: []string{awsv1.Group}}
		},
		Build: build,
	}, {
		Name: "kwok",
		Kinds: Kinds{AddToScheme: kwokv1alpha1.AddToScheme,
			NodeClasses: []schema.GroupVersionKind{kwokv1alpha1.GroupVersion().WithKind(kwokv1alpha1.Kind)}},
		Settings: Settings{Register: func(f *pflag.FlagSet) {
			f.String("instance-types-file-path", "", "")
		}},
		Build: build,
	}}
}

func TestWhichCloud(t *testing.T) {
	for _, c := range []struct{ args, env, want, kind string }{
		{"", "", "kwok", "KWOKNodeClass"},
		{"--cluster-name=prod", "", "aws", "EC2NodeClass"},
		{"", "prod", "aws", "EC2NodeClass"},
		{"--cloud-provider=kwok --cluster-name=prod", "", "kwok", "KWOKNodeClass"},
		{"--cloud-provider=aws", "prod", "aws", "EC2NodeClass"},
	} {
		t.Run(c.args+" "+c.env, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("CLUSTER_NAME", c.env)
			}
			o, err := parse(t, strings.Fields(c.args)...)
			if err != nil {
				t.Fatal(err)
			}
			cloud := o.cloud.chosen()
			if cloud.Name != c.want || len(cloud.Kinds.NodeClasses) != 1 || cloud.Kinds.NodeClasses[0].Kind != c.kind {
				t.Errorf("it is %s with %v, want %s with %s", cloud.Name, cloud.Kinds.NodeClasses, c.want, c.kind)
			}
			scheme, err := newScheme(cloud)
			if err != nil {
				t.Fatal(err)
			}
			for _, gvk := range cloud.requiredKinds() {
				if !scheme.Recognizes(gvk) {
					t.Errorf("the scheme does not know %s", gvk)
				}
			}
		})
	}
}

// Of the settings of a cloud only those of the chosen one are judged.
func TestSettingsOfTheChosenCloudAreJudged(t *testing.T) {
	for args, want := range map[string]string{
		"--cloud-provider=gcp": `--cloud-provider: "gcp" is ` +
			`not one of aws, kwok`,
		"--cloud-provider=aws":                                           "--cluster-name is empty",
		"--cluster-name=c --aws-feature-gates=CEL":                       `--aws-feature-gates: "CEL" is not Name=true`,
		"--cloud-provider=kwok --cluster-name=c --aws-feature-gates=CEL": "",
	} {
		_, err := parse(t, strings.Fields(args)...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
	}
}

func TestHelpSaysWhatChoosesACloud(t *testing.T) {
	want := "where nodes come from: aws or kwok; empty for aws if there is a --cluster-name, else kwok"
	if got := NewCommand(twoClouds()...).Flags().Lookup("cloud-provider").Usage; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
	// A program with one cloud has nothing to choose.
	o, f := newOptions(twoClouds()[:1]), pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.register(f)
	if got, want := f.Lookup("cloud-provider").Usage, "where nodes come from: aws; empty for aws"; got != want {
		t.Errorf("with one cloud it is %q, want %q", got, want)
	}
	if err := o.cloud.choose(); err != nil || o.cloud.name != "aws" {
		t.Errorf("with one cloud it is %q, %v", o.cloud.name, err)
	}
}

// Gates of a cloud's own that do not exist are told with those of the core, if the cloud is used.
func TestUnknownGatesOfACloudAreTold(t *testing.T) {
	for args, want := range map[string]string{
		"--cluster-name=c --aws-feature-gates=NodeClassCEl=true": `--aws-feature-gates: "NodeClassCEl" ` +
			`is not a gate of this version; did you mean ` +
			`NodeClassCEL?`,
		"--cluster-name=c --aws-feature-gates=NodeClassCEL=true":                        "",
		"--cluster-name=c --cloud-provider=kwok --aws-feature-gates=NodeClassCEl=false": "",
	} {
		o, err := parse(t, strings.Fields(args)...)
		if err != nil {
			t.Fatal(err)
		}
		unknown := o.unknownGates()
		if want == "" && len(unknown) > 0 || want != "" && (len(unknown) != 1 || unknown[0].text != want ||
			!unknown[0].needed) {
			t.Errorf("%s: %+v, want %q", args, unknown, want)
		}
	}
}

func TestGatesOfACloud(t *testing.T) {
	o, err := parse(t, "--cluster-name=c", "--aws-feature-gates=NodeClassCEL=true,OfTheFuture=true")
	if err != nil {
		t.Fatal(err)
	}
	own := o.cloud.chosen().Settings.Gates
	if !own.Enabled("NodeClassCEL") || own.Enabled("OfTheFuture") || !o.gates.Enabled("ReservedCapacity") {
		t.Errorf("the gates are %v and %v", own.on, o.gates.on)
	}
}

// What is wrong with a cloud is said before anything is tried.
func TestACloudMustBeWhole(t *testing.T) {
	for want, spoil := range map[string]func(clouds []Cloud){
		`cloud "" has no Name`:                 func(c []Cloud) { c[0].Name = "" },
		`cloud "kwok" has no Build`:            func(c []Cloud) { c[1].Build = nil },
		`cloud "aws" has no Kinds.AddToScheme`: func(c []Cloud) { c[0].Kinds.AddToScheme = nil },
		`cloud "aws" has no Kinds.NodeClasses`: func(c []Cloud) { c[0].Kinds.NodeClasses = nil },
		`there are two clouds "aws"`:           func(c []Cloud) { c[1].Name = "aws" },
		`which it does not register`:           func(c []Cloud) { c[0].Settings.ChosenBy = "region" },
		`so it would always be chosen`: func(c []Cloud) {
			c[0].Settings.Register = func(f *pflag.FlagSet) { f.Bool("here", false, "") }
			c[0].Settings.ChosenBy = "here"
		},
		`--zone, which is not a text that is empty`: func(c []Cloud) {
			c[0].Settings.Register = func(f *pflag.FlagSet) { f.String("zone", "a", "") }
			c[0].Settings.ChosenBy = "zone"
		},
		`cloud "kwok" registers --metrics-port`: func(c []Cloud) {
			c[1].Settings.Register = func(f *pflag.FlagSet) { f.Int("metrics-port", 0, "") }
		},
		`cloud "kwok" registers --cloud-provider`: func(c []Cloud) {
			c[1].Settings.Register = func(f *pflag.FlagSet) { f.String("cloud-provider", "", "") }
		},
		`cloud "kwok" registers --help, which`: func(c []Cloud) {
			c[1].Settings.Register = func(f *pflag.FlagSet) { f.Bool("help", false, "") }
		},
		`cloud "kwok" registers --here with the shorthand -h`: func(c []Cloud) {
			c[1].Settings.Register = func(f *pflag.FlagSet) { f.BoolP("here", "h", false, "") }
		},
		`cloud "kwok" registers --there with the shorthand -z`: func(c []Cloud) {
			c[0].Settings.Register = func(f *pflag.FlagSet) {
				f.StringP("cluster-name", "z", "", "")
			}
			c[1].Settings.Register = func(f *pflag.FlagSet) { f.BoolP("there", "z", false, "") }
		},
		`cloud "kwok" can't register its flags`: func(c []Cloud) {
			c[1].Settings.Register = func(f *pflag.FlagSet) {
				f.Bool("twice", false, "")
				f.Bool("twice", false, "")
			}
		},
		`cloud "kwok" has Settings.Gates without a flag; make them with NewGates`: func(c []Cloud) {
			c[1].Settings.Gates = &Gates{}
		},
		`cloud "kwok" registers --aws-feature-gates`: func(c []Cloud) {
			c[1].Settings.Gates = c[0].Settings.Gates
		},
	} {
		clouds := twoClouds()
		spoil(clouds)
		cmd := NewCommand(clouds...)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"--kubeconfig=nowhere"})
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	cmd := NewCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(nil)
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "no cloud") {
		t.Errorf("without a cloud: %v", err)
	}
}

func TestWhatProvisionersMeanOnACloud(t *testing.T) {
	p := Provisioners{NodeClass: schema.GroupKind{Group: awsv1.Group, Kind: awsv1.Kind}, ClusterName: "prod",
		InstanceProfile: "nodes"}
	target, err := translation(p)
	if err != nil || target.Cloud != "aws" || target.Cluster != "prod" || target.InstanceProfile != "nodes" {
		t.Errorf("%+v, %v", target, err)
	}
	p = Provisioners{NodeClass: schema.GroupKind{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind}}
	if target, err := translation(p); err != nil || target.Cloud != "kwok" {
		t.Errorf("%+v, %v", target, err)
	}
	p.NodeClass.Kind = "OtherNodeClass"
	if _, err := translation(p); err == nil || !strings.Contains(err.Error(), "OtherNodeClass") {
		t.Errorf("of a kind that there is none of: %v", err)
	}
}

// TestProvisionersNeedTheirKinds: without them in the scheme, what is made of a Provisioner could not be written.
func TestProvisionersNeedTheirKinds(t *testing.T) {
	aws := schema.GroupKind{Group: awsv1.Group, Kind: awsv1.Kind}
	kwok := schema.GroupKind{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind}
	both := func(s *runtime.Scheme) error { return errors.Join(awsv1.AddToScheme(s), awsv1alpha1.AddToScheme(s)) }
	for _, c := range []struct {
		class schema.GroupKind
		add   func(*runtime.Scheme) error
		args  []string
		want  string
	}{
		{aws, awsv1.AddToScheme, nil, `cloud "aws" has Provisioners, and its Kinds.AddToScheme does not add ` +
			`AWSNodeTemplate of karpenter.k8s.aws/v1alpha1`},
		{aws, kwokv1alpha1.AddToScheme, nil, "does not add EC2NodeClass of karpenter.k8s.aws/v1"},
		{aws, kwokv1alpha1.AddToScheme, []string{"--disable-older-kinds"}, ""},
		{aws, both, nil, ""},
		{kwok, both, nil, "does not add KWOKNodeClass of karpenter.kwok.sh/v1alpha1"},
		{kwok, kwokv1alpha1.AddToScheme, nil, ""},
		{
			schema.GroupKind{Group: "example.com", Kind: "Mine"}, both, nil,
			`cloud "aws": Provisioners: no Provisioner can`,
		},
	} {
		clouds := twoClouds()
		clouds[0].Kinds.AddToScheme = c.add
		clouds[0].Provisioners = func() Provisioners { return Provisioners{NodeClass: c.class} }
		o, f := newOptions(clouds), pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.register(f)
		if err := f.Parse(append(c.args, "--cluster-name=c")); err != nil {
			t.Fatal(err)
		}
		err := o.validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want an error with %q", c.class, err, c.want)
		}
	}
}

// TestGatesAreReadBeforeACloudJudgesItsSettings: what its settings may be can depend on its gates and on the core's.
func TestGatesAreReadBeforeACloudJudgesItsSettings(t *testing.T) {
	clouds := twoClouds()
	o, f := newOptions(clouds), pflag.NewFlagSet("test", pflag.ContinueOnError)
	var own, core bool
	clouds[0].Settings.Validate = func() error {
		own, core = clouds[0].Settings.Gates.Enabled("NodeClassCEL"), o.gates.Enabled("NodeRepair")
		return nil
	}
	o.register(f)
	err := f.Parse([]string{"--cluster-name=c", "--aws-feature-gates=NodeClassCEL=true",
		"--feature-gates=NodeRepair=true"})
	if err = errors.Join(err, o.validate()); err != nil {
		t.Fatal(err)
	}
	if !own || !core {
		t.Errorf("when the settings are judged, the cloud's gate is %v and the core's %v", own, core)
	}
}

// TestMissingDefinitionsAreNamed: the charts of this repository have only its own.
func TestMissingDefinitionsAreNamed(t *testing.T) {
	for group, want := range map[string]bool{"karpenter.sh": true, awsv1.Group: true, kwokv1alpha1.Group: true,
		"fleet.example.com": false} {
		got := definition(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Any"})
		if strings.Contains(got, "charts/") != want || !want && !strings.Contains(got, group) {
			t.Errorf("%s: install %s", group, got)
		}
	}
}

func TestLabelsOfACloudAreKnown(t *testing.T) {
	clouds := twoClouds()
	labels := known(clouds[0].labels())
	if !labels.IsWellKnown(awsv1.InstanceFamilyLabelKey) || labels.IsRestricted(awsv1.InstanceFamilyLabelKey) ||
		!labels.IsRestricted(awsv1.Group+"/own") {
		t.Errorf("the labels are %+v", labels)
	}
	if labels := known(clouds[1].labels()); labels.IsRestricted(awsv1.Group + "/own") {
		t.Errorf("a cloud that adds none has the labels %+v", labels)
	}
	if err := clouds[0].Kinds.AddToScheme(runtime.NewScheme()); err != nil {
		t.Error(err)
	}
}
