// Package refresh is what goes on behind the AWS provider while nodes come and go: prices are read again, what real
// nodes have is learnt, and instances get the names of their nodes.
//
// It is an edge: it calls AWS and reads and annotates NodeClaims. A manager runs it.
package refresh

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

const (
	// A refresh that failed is tried again after firstRetry, then after twice as long each time, at most after
	// lastRetry.
	firstRetry, lastRetry = 15 * time.Second, 15 * time.Minute
	// refreshLimit bounds one refresh: the list of prices has many pages.
	refreshLimit = 5 * time.Minute
)

// Prices keeps a price book fresh. It runs on every replica, so that the next leader knows them at once.
type Prices struct {
	Book *price.Book
	// Spot and OnDemand are asked; a nil one is not, and the built-in table holds.
	Spot     price.EC2API
	OnDemand price.PricingAPI
	// Changed is called when a price is another than before; may be nil.
	Changed func()
	// Guard catches panics; nil to tell nobody of them.
	Guard *recovery.Guard
	// After tells when a time has passed; time.After if it is nil.
	After func(time.Duration) <-chan time.Time
}

// NeedLeaderElection makes a manager run it on every replica.
func (p *Prices) NeedLeaderElection() bool { return false }

// Start refreshes until the context ends.
func (p *Prices) Start(ctx context.Context) error {
	if p.After == nil {
		p.After = time.After
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if p.Spot != nil {
			p.Guard.Keep(ctx, "reading spot prices", p.After, func(ctx context.Context) {
				p.keep(ctx, price.Spot, func(ctx context.Context) error { return p.Book.RefreshSpot(ctx, p.Spot) })
			})
		}
	}()
	if p.OnDemand != nil {
		p.Guard.Keep(ctx, "reading on-demand prices", p.After, func(ctx context.Context) {
			p.keep(ctx, price.OnDemand, func(ctx context.Context) error {
				return p.Book.RefreshOnDemand(ctx, p.OnDemand)
			})
		})
	}
	<-done
	return nil
}

// keep refreshes one kind of price again and again. Trouble is told once, and once when it is over.
func (p *Prices) keep(ctx context.Context, kind price.Kind, refresh func(context.Context) error) {
	pause, failing := firstRetry, false
	for {
		before := p.Book.Revision()
		limited, cancel := context.WithTimeout(ctx, refreshLimit)
		err := refresh(limited)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if p.Changed != nil && p.Book.Revision() != before {
			p.Changed()
		}
		wait := price.RefreshEvery(kind)
		switch {
		case err != nil:
			if !failing {
				log.FromContext(ctx).Error(err, "prices could not be read; those known last are used until they can",
					"kind", string(kind))
			}
			wait = min(pause, wait)
			pause, failing = min(2*pause, lastRetry), true
		case failing:
			log.FromContext(ctx).Info("prices can be read again", "kind", string(kind))
			fallthrough
		default:
			pause, failing = firstRetry, false
		}
		select {
		case <-ctx.Done():
			return
		case <-p.After(wait):
		}
	}
}
