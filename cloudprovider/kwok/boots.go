package kwok

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// Start lets instances join the cluster until the context ends. It begins with those that a dead controller left
// behind. A manager runs it.
func (p *Provider) Start(ctx context.Context) error {
	p.boots.open(ctx)
	defer p.boots.close()
	retry := backoff{}
	for {
		all, err := p.records.list(ctx)
		if err == nil {
			for _, r := range all {
				p.boots.begin(r)
			}
			<-ctx.Done()
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		log.FromContext(ctx).Error(err, "can't look for instances whose nodes have not joined yet; trying again")
		if pause(ctx, retry.next()) != nil {
			return nil
		}
	}
}

// NeedLeaderElection makes a manager run Start on the leader only.
func (p *Provider) NeedLeaderElection() bool { return true }

// join makes the instance's Node. If the instance ended while its Node was being made, the Node goes, too.
func (p *Provider) join(ctx context.Context, r *record) error {
	if err := p.nodes.add(ctx, r); err != nil {
		return err
	}
	err := p.records.markJoined(ctx, r)
	if cloudprovider.IsNotFound(err) {
		return p.nodes.remove(ctx, r)
	}
	return err
}

// boots are the instances whose machines are starting.
type boots struct {
	join func(ctx context.Context, r *record) error

	mu      sync.Mutex
	ctx     context.Context // nil while closed
	running map[string]*boot
	group   sync.WaitGroup
}

// boot is one of them.
type boot struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func newBoots(join func(ctx context.Context, r *record) error) *boots {
	return &boots{join: join, running: map[string]*boot{}}
}

// open lets boots begin; those asked for while it is closed are found by Start.
func (b *boots) open(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ctx = ctx
}

// close waits for the boots to end, which the end of the context makes them do.
func (b *boots) close() {
	b.mu.Lock()
	b.ctx = nil
	b.mu.Unlock()
	b.group.Wait()
}

// begin boots the instance in the background, unless it never will, has already, or is at it.
func (b *boots) begin(r *record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx == nil || r.joined || r.JoinsAt == nil || b.running[r.name()] != nil {
		return
	}
	ctx, cancel := context.WithCancel(b.ctx)
	this := &boot{cancel: cancel, done: make(chan struct{})}
	b.running[r.name()] = this
	b.group.Go(func() {
		b.boot(ctx, r)
		b.mu.Lock()
		delete(b.running, r.name())
		b.mu.Unlock()
		cancel()
		close(this.done)
	})
}

// boot waits until the machine is up and then tries to join until it succeeds or is stopped.
func (b *boots) boot(ctx context.Context, r *record) {
	if pause(ctx, time.Until(*r.JoinsAt)) != nil {
		return
	}
	retry := backoff{}
	for {
		err := b.join(ctx, r)
		if err == nil || ctx.Err() != nil {
			return
		}
		log.FromContext(ctx).Error(err, "a node could not join; trying again", "instance", r.name())
		if pause(ctx, retry.next()) != nil {
			return
		}
	}
}

// stop ends the boot of an instance and returns when nothing of it goes on any more.
func (b *boots) stop(r *record) {
	b.mu.Lock()
	this := b.running[r.name()]
	b.mu.Unlock()
	if this != nil {
		this.cancel()
		<-this.done
	}
}

// backoff is the pause between tries: from 50 ms, doubled each time, up to 5 s.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, 50*time.Millisecond), 5*time.Second)
	return b.last
}
