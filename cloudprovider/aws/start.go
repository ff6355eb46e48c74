package aws

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// cleanEvery is how often launch templates are looked for that are not used any more: every new image and every
	// change of a class or pool makes others, and an account has room for some thousand.
	cleanEvery = 30 * time.Minute
)

// NeedLeaderElection makes the manager run Start on the replica that leads only.
func (p *Provider) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it takes over from the leader before, and cleans up from time to time until the
// context ends.
func (p *Provider) Start(ctx context.Context) error {
	p.instances.SetLifetime(ctx)
	p.o.Guard.Keep(ctx, "taking over and removing launch templates", nil, p.cleanPeriodically)
	return nil
}

func (p *Provider) cleanPeriodically(ctx context.Context) {
	if err := p.Lead(ctx); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "taking over; the first launch tries it again")
	}
	ticker := time.NewTicker(cleanEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := p.DeleteUnusedTemplates(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "removing launch templates that are not used any more; it will be "+
					"tried again")
			}
		}
	}
}

// DeleteUnusedTemplates deletes the cluster's launch templates that have not been used for a while.
func (p *Provider) DeleteUnusedTemplates(ctx context.Context) error {
	return p.templates.DeleteUnused(ctx, p.o.ClusterName)
}

// Lead notes that this process launches instances from now on. Start does it, too.
func (p *Provider) Lead(ctx context.Context) error { return p.instances.Lead(ctx) }
