package nodeclass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
)

const (
	// collectEvery is how often is looked for what was left behind.
	collectEvery = 30 * time.Minute
	// young is how long a launch template is left alone: its class may not have been seen yet.
	young = time.Hour
)

// Collector removes, from time to time, the instance profiles that no class and no node needs any more, and the launch
// templates of classes that are gone: a finalizer that somebody removed by hand, or a role that was changed, leaves
// them behind.
type Collector struct {
	Options
	profiles *profile.Collector
}

// NewCollector returns a Collector; the manager runs it while it leads.
func NewCollector(o Options) *Collector {
	return &Collector{Options: o, profiles: profile.NewCollector(o.Profiles, o.Now)}
}

// NeedLeaderElection keeps a second controller from removing what the first is making.
func (c *Collector) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (c *Collector) Start(ctx context.Context) error {
	c.Guard.Keep(ctx, "collecting what EC2NodeClasses left behind", nil, c.keep)
	return nil
}

func (c *Collector) keep(ctx context.Context) {
	ticker := time.NewTicker(collectEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := c.Collect(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "collecting what EC2NodeClasses left behind; it will be tried again",
					"after", collectEvery.String())
			}
		}
	}
}

// Collect looks once. What can't be removed now is tried the next time.
func (c *Collector) Collect(ctx context.Context) error {
	classes := &awsv1.EC2NodeClassList{}
	if err := c.Client.List(ctx, classes); err != nil {
		return fmt.Errorf("listing EC2NodeClasses: %w", err)
	}
	claims, err := listClaims(ctx, c.Client, "")
	if err != nil {
		return err
	}
	return errors.Join(c.collectProfiles(ctx, classes.Items, claims), c.collectTemplates(ctx, classes.Items))
}

// collectProfiles does nothing where profiles are not made: IAM may be out of reach there, and not allowed.
func (c *Collector) collectProfiles(ctx context.Context, classes []awsv1.EC2NodeClass,
	claims []*unstructured.Unstructured) error {
	if !slices.ContainsFunc(classes, func(class awsv1.EC2NodeClass) bool { return c.Profiles.Managed(&class) }) {
		return nil
	}
	gone, err := c.profiles.Collect(ctx, inUse(classes, claims))
	if len(gone) > 0 {
		log.FromContext(ctx).Info("removed instance profiles that nothing uses", "profiles", gone)
	}
	return err
}

// inUse tells whether a class or a node needs a profile. A NodeClaim that does not say which one its instance has,
// since it was made before that was noted, needs all of its class, and all that belong to no class if its own is gone.
func inUse(classes []awsv1.EC2NodeClass, claims []*unstructured.Unstructured) func(profile.Profile) bool {
	names, wholeClasses := map[string]bool{}, map[string]bool{}
	uids, known := map[string]string{}, map[string]bool{}
	homeless := false
	for i := range classes {
		names[classes[i].Status.InstanceProfile] = true
		uids[classes[i].Name] = string(classes[i].UID)
		known[string(classes[i].UID)] = true
	}
	for _, claim := range claims {
		if name := claim.GetAnnotations()[awsv1.InstanceProfileAnnotationKey]; name != "" {
			names[name] = true
		} else if class, ok := className(claim); ok {
			wholeClasses[uids[class]] = true
			homeless = homeless || uids[class] == ""
		}
	}
	return func(p profile.Profile) bool {
		return names[p.Name] || wholeClasses[p.ClassUID] || homeless && !known[p.ClassUID]
	}
}

func (c *Collector) collectTemplates(ctx context.Context, classes []awsv1.EC2NodeClass) error {
	known := map[string]bool{}
	for i := range classes {
		known[classes[i].Name] = true
	}
	list, err := listTemplates(ctx, c.Templates, c.Cluster, "")
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range list {
		if known[t.class] || c.Now().Sub(t.createdAt) < young {
			continue
		}
		failed = append(failed, deleteTemplate(ctx, c.Templates, t))
	}
	return errors.Join(failed...)
}
