package operator

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// Cloud is a cloud that the controller can run on. Name, Kinds and Build are required.
type Cloud struct {
	// Name is its value of --cloud-provider: a short lower-case word, the same that its provider has.
	Name string
	// Kinds are the kinds of objects that it brings.
	Kinds Kinds
	// Settings are its own.
	Settings Settings
	// Labels are the labels that it decides. They must be known before any NodeClass is there, because pools are judged
	// by them. It is called once the settings are read.
	Labels func() Labels
	// Provisioners says what Provisioners, the kind before NodePool, mean here; nil if nothing is made of them. It is
	// called once the settings are read. Kinds.AddToScheme must add the kind of NodeClass that they get and, for
	// EC2NodeClasses, AWSNodeTemplate.
	Provisioners func() Provisioners
	// Build makes the provider and adds what works in its background to the host's manager. The caches of the manager
	// are not filled yet.
	Build func(ctx context.Context, host *Host) (cloudprovider.Provider, error)
}

// Kinds are the kinds of objects that a cloud brings.
type Kinds struct {
	// AddToScheme makes them known to clients.
	AddToScheme func(*runtime.Scheme) error
	// NodeClasses are its kinds of NodeClass. The controller does not start in a cluster that does not serve them.
	NodeClasses []schema.GroupVersionKind
}

// Settings are those of a cloud. The zero value has none.
type Settings struct {
	// Register adds its flags. Each has an environment variable, too: its name in capitals, with underscores. What they
	// hold counts only if the cloud is chosen.
	Register func(*pflag.FlagSet)
	// Validate is called if the cloud is chosen, once its settings and all gates are read. An error names the flag and
	// the fix.
	Validate func() error
	// ChosenBy is the flag that chooses this cloud where --cloud-provider is not given; empty if none does.
	ChosenBy string
	// Gates are feature gates of its own, with a flag of their own; nil if there are none.
	Gates *Gates
	// FeatureGates are the gates of --feature-gates that it reads.
	FeatureGates []string
}

// Labels are what a cloud adds to the labels of the contract.
type Labels struct {
	// WellKnown are labels that an instance type or an offering decides, so that pools may require them although they
	// are in a restricted domain. Zone, region, instance type, architecture, operating system and capacity type need
	// not be among them.
	WellKnown []string
	// RestrictedDomains are domains, with their subdomains, whose other labels are the cloud's own.
	RestrictedDomains []string
}

// Provisioners says what Provisioners mean on a cloud: a NodePool, and a NodeClass of one of the kinds that this
// repository has.
type Provisioners struct {
	// NodeClass is the kind of NodeClass that they get: EC2NodeClass or KWOKNodeClass.
	NodeClass schema.GroupKind
	// ClusterName is what selectors and the role follow from that a Provisioner does not give. Only EC2NodeClasses need
	// it.
	ClusterName string
	// InstanceProfile is the one of nodes whose Provisioner names none; empty for the role
	// KarpenterNodeRole-<ClusterName>.
	InstanceProfile string
}

// check says what is missing. It is a mistake of whoever wrote main, and not of whoever runs it.
func (c *Cloud) check() error {
	for _, required := range []struct {
		field   string
		missing bool
	}{
		{"Name", c.Name == ""}, {"Kinds.AddToScheme", c.Kinds.AddToScheme == nil},
		{"Kinds.NodeClasses", len(c.Kinds.NodeClasses) == 0},
		{"Build", c.Build == nil},
	} {
		if required.missing {
			return fmt.Errorf("cloud %q has no %s; it is required", c.Name, required.field)
		}
	}
	return nil
}

// labels are those that it adds.
func (c *Cloud) labels() Labels {
	if c.Labels == nil {
		return Labels{}
	}
	return c.Labels()
}
