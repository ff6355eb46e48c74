package aws

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/contain"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	// EC2 lets an account write tags a hundred times at once and then ten times a second. Names are in no hurry, and others
	// write tags, too.
	namesAtOnce   = 4
	namesBurst    = 40
	namesInterval = 200 * time.Millisecond
	nameLimit     = 30 * time.Second
	// nameTries is how often a name is tried before it is left for the next look at the instances.
	nameTries = 3

	namingInstances = "writing the names of claims on instances"
)

// names writes the names of claims on instances that were launched together and so could not be named by the launch. It
// goes on behind the launches, at a pace that EC2 likes: who owns what is known without it (settle.go).
type names struct {
	api EC2API
	// done is told of every instance that is named.
	done  func(id string)
	guard *contain.Guard

	mu sync.Mutex
	// life is the time in which names are written: as long as this process leads, or always if nobody says so.
	life    context.Context
	queue   []naming
	queued  map[string]bool
	workers int
	tokens  int
	refill  time.Time
	now     func() time.Time
}

type naming struct {
	id, claim string
	tries     int
}

func newNames(api EC2API, now func() time.Time, guard *contain.Guard, done func(id string)) *names {
	return &names{api: api, done: done, guard: guard, now: now, life: context.Background(), queued: map[string]bool{}, tokens: namesBurst}
}

// until has names written until the context ends, and not after.
func (n *names) until(life context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.life = life
}

// add has the instance named soon.
func (n *names) add(id, claim string) {
	if claim == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.queued[id] {
		return
	}
	n.queued[id] = true
	n.queue = append(n.queue, naming{id: id, claim: claim})
	if n.workers < namesAtOnce {
		n.workers++
		go n.begin()
	}
}

// begin works until there is nothing left to do.
func (n *names) begin() {
	if err := n.guard.Run(namingInstances, n.work); err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.workers-- // the next name that is added has another begin
	}
}

// work names instances until there are no more.
func (n *names) work() {
	for {
		life, next, wait := n.next()
		if life == nil {
			return
		}
		if wait > 0 {
			pause(life, wait)
			continue
		}
		n.finish(next, n.write(life, next))
	}
}

// write writes one name. A panic is an error like others, so that it is tried a few times and no more.
func (n *names) write(life context.Context, what naming) (err error) {
	ctx, cancel := context.WithTimeout(life, nameLimit)
	defer cancel()
	broken := n.guard.Run(namingInstances, func() {
		_, err = n.api.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{what.id}, Tags: tagList(map[string]string{awsv1.NodeClaimTagKey: what.claim})})
	})
	return errors.Join(err, broken)
}

// next takes the next name to write, or says how long to wait for EC2's sake. Without a context there is nothing more to do.
func (n *names) next() (life context.Context, next naming, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) == 0 || n.life.Err() != nil {
		n.workers--
		return nil, naming{}, 0
	}
	now := n.now()
	if n.refill.IsZero() {
		n.refill = now
	}
	if earned := int(now.Sub(n.refill) / namesInterval); earned > 0 {
		n.tokens = min(namesBurst, n.tokens+earned)
		n.refill = n.refill.Add(time.Duration(earned) * namesInterval)
	}
	if n.tokens == 0 {
		return n.life, naming{}, namesInterval
	}
	n.tokens--
	next = n.queue[0]
	n.queue = n.queue[1:]
	return n.life, next, 0
}

// finish notes how it went. An instance that is gone needs no name; what fails otherwise is tried again.
func (n *names) finish(what naming, err error) {
	if err == nil || fault.IsNotFound(err) && what.tries+1 >= nameTries {
		n.done(what.id)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if what.tries++; err != nil && what.tries < nameTries && !fault.IsUnauthorized(err) {
		n.queue = append(n.queue, what)
		return
	}
	delete(n.queued, what.id)
}
