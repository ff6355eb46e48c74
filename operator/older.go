package operator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	awsv1alpha1 "github.com/tenon-sh/tenon/api/aws/v1alpha1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/internal/lease"
	"github.com/tenon-sh/tenon/internal/provisioner"
	"github.com/tenon-sh/tenon/internal/translate"
)

// addOlderKinds adds what keeps Provisioners and AWSNodeTemplates. Clusters without them are fine.
func addOlderKinds(on *deps, cloud *Cloud) error {
	if on.o.disableOlderKinds {
		on.mgr.GetLogger().Info("Provisioners and AWSNodeTemplates are left alone (--disable-older-kinds)")
		return nil
	}
	if cloud.Provisioners == nil {
		on.mgr.GetLogger().Info("Provisioners and AWSNodeTemplates are left alone: they mean nothing on this cloud",
			"provider", cloud.Name)
		return nil
	}
	target, err := translation(cloud.Provisioners())
	if err != nil {
		return err
	}
	writes, err := lease.Writer(on.mgr, on.leads)
	if err != nil {
		return err
	}
	unknown, err := provisioner.Setup(on.mgr, provisioner.Options{Client: writes, Events: on.events, Target: target})
	if err != nil {
		return fmt.Errorf("adding the controller of older kinds: %w", err)
	}
	for _, kind := range unknown {
		on.mgr.GetLogger().Info("the cluster does not serve a kind of an older generation; install its "+
			"CustomResourceDefinition and restart to use it", "kind", kind)
	}
	return nil
}

// checkProvisioners says what is missing for the Provisioners of a cloud.
func (c *Cloud) checkProvisioners() error {
	if c.Provisioners == nil {
		return nil
	}
	target, err := translation(c.Provisioners())
	if err != nil {
		return fmt.Errorf("cloud %q: Provisioners: %w", c.Name, err)
	}
	scheme, err := newScheme(c)
	if err != nil {
		return fmt.Errorf("cloud %q: %w", c.Name, err)
	}
	for _, gvk := range writtenKinds(target.Cloud) {
		if !scheme.Recognizes(gvk) {
			return fmt.Errorf("cloud %q has Provisioners, and its Kinds.AddToScheme does not add %s of %s: add its "+
				"AddToScheme, too", c.Name, gvk.Kind, gvk.GroupVersion())
		}
	}
	return nil
}

// writtenKinds are the kinds that package provisioner reads and writes for a cloud in their Go types.
func writtenKinds(of string) []schema.GroupVersionKind {
	if of == translate.KWOK {
		return []schema.GroupVersionKind{kwokv1alpha1.GroupVersion().WithKind(kwokv1alpha1.Kind)}
	}
	return []schema.GroupVersionKind{awsv1.GroupVersion().WithKind(awsv1.Kind),
		awsv1alpha1.GroupVersion().WithKind(awsv1alpha1.Kind)}
}

// translation is what package translate makes of Provisioners.
func translation(p Provisioners) (translate.Target, error) {
	out := translate.Target{Cluster: p.ClusterName, InstanceProfile: p.InstanceProfile}
	switch {
	case p.NodeClass.Group == awsv1.Group && p.NodeClass.Kind == awsv1.Kind:
		out.Cloud = translate.AWS
	case p.NodeClass.Group == kwokv1alpha1.Group && p.NodeClass.Kind == kwokv1alpha1.Kind:
		out.Cloud = translate.KWOK
	default:
		return out, fmt.Errorf("no Provisioner can be given a %s: there are %s and %s", p.NodeClass, awsv1.Kind,
			kwokv1alpha1.Kind)
	}
	return out, nil
}
