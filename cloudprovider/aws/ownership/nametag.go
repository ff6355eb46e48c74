package ownership

import (
	"context"
	"errors"
	"sync"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"golang.org/x/time/rate"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

const (
	// EC2 lets an account write tags a hundred times at once and then ten times a second. Names are in no hurry, and
	// others write tags, too.
	namesAtOnce   = 4
	namesBurst    = 40
	namesInterval = 200 * time.Millisecond
	nameLimit     = 30 * time.Second
	// nameTries is how often a name is tried before it is left for the next look at the instances.
	nameTries = 3

	namingInstances = "writing the names of claims on instances"
)

// nameTagger writes the names of claims on instances that were launched together and so could not be named by the
// launch. It goes on behind the launches, at a pace that EC2 likes: who owns what is known without it
// (resolve.go).
type nameTagger struct {
	api API
	// onNamed is told of every instance that is named.
	onNamed func(id string)
	guard   *recovery.Guard

	mu sync.Mutex
	// lifetime is the time in which names are written: as long as this process leads, or always if nobody says so.
	lifetime context.Context
	queue    []nameTag
	queued   map[string]bool
	workers  int
	limiter  *rate.Limiter
}

type nameTag struct {
	id, claim string
	tries     int
}

func newNameTagger(api API, guard *recovery.Guard, done func(id string)) *nameTagger {
	return &nameTagger{api: api, onNamed: done, guard: guard, lifetime: context.Background(),
		queued: map[string]bool{}, limiter: rate.NewLimiter(rate.Every(namesInterval), namesBurst)}
}

// setLifetime has names written until the context ends, and not after.
func (t *nameTagger) setLifetime(life context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lifetime = life
}

// add has the instance named soon.
func (t *nameTagger) add(id, claim string) {
	if claim == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queued[id] {
		return
	}
	t.queued[id] = true
	t.queue = append(t.queue, nameTag{id: id, claim: claim})
	if t.workers < namesAtOnce {
		t.workers++
		go t.begin()
	}
}

// begin works until there is nothing left to do.
func (t *nameTagger) begin() {
	if err := t.guard.Run(namingInstances, t.work); err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.workers-- // the next name that is added has another begin
	}
}

// work names instances until there are no more.
func (t *nameTagger) work() {
	for {
		life, next := t.next()
		if life == nil {
			return
		}
		t.finish(next, t.write(life, next))
	}
}

// write writes one name. A panic is an error like others, so that it is tried a few times and no more.
func (t *nameTagger) write(life context.Context, what nameTag) (err error) {
	if err := t.limiter.Wait(life); err != nil {
		return err // this process no longer leads
	}
	ctx, cancel := context.WithTimeout(life, nameLimit)
	defer cancel()
	broken := t.guard.Run(namingInstances, func() {
		_, err = t.api.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{what.id},
			Tags: []ec2types.Tag{{Key: new(awsv1.NodeClaimTagKey), Value: new(what.claim)}}})
	})
	return errors.Join(err, broken)
}

// next takes the next name to write. Without a context there is nothing more to do.
func (t *nameTagger) next() (life context.Context, next nameTag) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 || t.lifetime.Err() != nil {
		t.workers--
		return nil, nameTag{}
	}
	next = t.queue[0]
	t.queue = t.queue[1:]
	return t.lifetime, next
}

// finish notes how it went. An instance that is gone needs no name; what fails otherwise is tried again.
func (t *nameTagger) finish(what nameTag, err error) {
	if err == nil || fault.IsNotFound(err) && what.tries+1 >= nameTries {
		t.onNamed(what.id)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if what.tries++; err != nil && what.tries < nameTries && !fault.IsUnauthorized(err) {
		t.queue = append(t.queue, what)
		return
	}
	delete(t.queued, what.id)
}
