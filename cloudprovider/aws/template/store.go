package template

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/time/rate"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ratelimit"
)

const (
	// mostNames is how many values EC2 takes in one filter.
	mostNames = 200
	// templatesAtOnce is how many launch templates are created at the same time.
	templatesAtOnce = 4
	// EC2 lets an account create launch templates fifty times at once and then five times a second. Others in the
	// account do, too.
	templatesBurst    = 40
	templatesInterval = 220 * time.Millisecond
	// templatesLimit is how long a launch waits for its templates before it is told to come again. It then has its old
	// place in the line, as long as it comes within turnKept.
	templatesLimit = 35 * time.Second
	turnKept       = 10 * time.Minute
	// tooShort is the time in which it is not worth while to begin with a template that somebody else has not made in
	// time.
	tooShort = time.Second
)

// API are the calls of EC2 about launch templates.
type API interface {
	DescribeLaunchTemplates(context.Context, *ec2.DescribeLaunchTemplatesInput,
		...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error)
	CreateLaunchTemplate(context.Context, *ec2.CreateLaunchTemplateInput,
		...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error)
	DeleteLaunchTemplate(context.Context, *ec2.DeleteLaunchTemplateInput,
		...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error)
}

// Store makes sure that launch templates exist. What it remembers is only a hint: a launch that finds a
// template gone says so (forget) and has it made again.
type Store struct {
	api API
	// limiter is that of creating them. queue are given to one launch at a time, which creates all of its own: so some
	// launches have theirs soon instead of each a few.
	limiter *rate.Limiter
	queue   ratelimit.Queue

	mu sync.Mutex
	// wantedSince is since when those that don't exist are wanted.
	wantedSince map[string]time.Time
	exist       map[string]bool
	creating    map[string]*creation
	// used is when each was last asked for.
	used map[string]time.Time
	now  func() time.Time
	// cache are templates as they are to be, by what they are made from: thousands of claims ask for the same.
	cache map[cacheKey]*Template
}

// creation is a template that somebody is making.
type creation struct {
	// done is closed when it is there, or is not going to be.
	done chan struct{}
	// waitsForTurn says that whoever makes it waits for a turn: EC2 is not being asked.
	waitsForTurn bool
	// err is why it was not made; final says that it is the answer for all who wait. It is not if somebody else may
	// have more luck: whoever was to make it has given up or has not had a turn in time.
	err   error
	final bool
}

// cacheKey is what a template is made from: the key of a spec, and a variant.
type cacheKey struct {
	spec    [32]byte
	variant Variant
}

// maxCached is how many keys are kept.
const maxCached = 5000

// NewStore returns a store that knows of no template.
func NewStore(api API, now func() time.Time) *Store {
	return &Store{api: api, limiter: rate.NewLimiter(rate.Every(templatesInterval), templatesBurst),
		wantedSince: map[string]time.Time{},
		exist:       map[string]bool{}, creating: map[string]*creation{}, used: map[string]time.Time{}, now: now,
		cache: map[cacheKey]*Template{}}
}

// Cached is the template of a spec with a variant. The key is the spec's.
func (s *Store) Cached(key [32]byte, spec *Spec, v Variant) (*Template, error) {
	of := cacheKey{key, v}
	s.mu.Lock()
	have := s.cache[of]
	s.mu.Unlock()
	if have != nil {
		return have, nil
	}
	with := *spec
	with.variant = v
	made, err := newTemplate(&with)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.cache) >= maxCached {
		clear(s.cache)
	}
	s.cache[of] = made
	return made, nil
}

// usedSince tells whether the template was asked for after the time.
func (s *Store) usedSince(name string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[name].After(at)
}

// Ensure creates those that don't exist. Each is created by one caller; others who need it wait for that one, and what
// EC2 says to that one is the answer for all: it would say the same to each.
func (s *Store) Ensure(ctx context.Context, wanted map[string]*Template) error {
	ctx, cancel := context.WithTimeout(ctx, templatesLimit)
	defer cancel()
	for {
		mine, others := s.divide(wanted)
		if len(mine) > 0 {
			failures := s.createMissing(ctx, mine)
			s.release(ctx, mine, failures)
			if err := mainFailure(failures); err != nil {
				return err
			}
		}
		if len(others) == 0 {
			return nil
		}
		for _, other := range others {
			if err := s.awaitOther(ctx, other); err != nil {
				return err
			}
		}
		// Whoever was to make them may have given up: look again.
	}
}

// awaitOther waits for a template that somebody else is making.
func (s *Store) awaitOther(ctx context.Context, of *creation) error {
	select {
	case <-of.done:
		if until, _ := ctx.Deadline(); of.err == nil || !of.final && (time.Until(until) > tooShort ||
			errors.Is(of.err, context.Canceled)) {
			return nil
		}
		return of.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	inLine := of.waitsForTurn
	s.mu.Unlock()
	if inLine {
		return s.timeoutError(ctx.Err())
	}
	return fault.Explain("waiting for EC2 to answer another launch about the same launch templates", ctx.Err())
}

// mainFailure is the failure to tell of: not that there was no turn if there is another. Nil if all went well.
func mainFailure(failures []error) error {
	var out error
	for _, err := range failures {
		if err != nil && (out == nil || cloudprovider.IsQueued(out)) {
			out = err
		}
	}
	return out
}

// divide divides what is not known to exist into what the caller has to make and what others are making.
func (s *Store) divide(wanted map[string]*Template) (mine []*Template, others []*creation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		s.used[name] = s.now()
		if s.exist[name] {
			continue
		}
		if other := s.creating[name]; other != nil {
			others = append(others, other)
			continue
		}
		if _, waits := s.wantedSince[name]; !waits {
			s.wantedSince[name] = s.now()
		}
		s.creating[name] = &creation{done: make(chan struct{})}
		mine = append(mine, wanted[name])
	}
	return mine, others
}

// release lets those go on who wait for the templates. The failures are in the same order.
func (s *Store) release(ctx context.Context, mine []*Template, failures []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range mine {
		of := s.creating[m.Name]
		of.err = failures[i]
		of.final = !cloudprovider.IsQueued(of.err) && !gaveUp(ctx, of.err)
		close(of.done)
		delete(s.creating, m.Name)
	}
}

// gaveUp tells whether the error is only that the caller's own time is over.
func gaveUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// setWaiting notes whether templates that are being made wait for a turn.
func (s *Store) setWaiting(waits bool, list ...*Template) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range list {
		s.creating[m.Name].waitsForTurn = waits
	}
}

// Forget has the templates looked for again.
func (s *Store) Forget(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		delete(s.exist, name)
		delete(s.used, name)
	}
}

// createMissing asks which of the templates exist and creates the others. It says for each why it was not made; nil if
// it is there.
func (s *Store) createMissing(ctx context.Context, list []*Template) []error {
	there := map[string]bool{}
	failures := make([]error, len(list))
	for some := range slices.Chunk(list, mostNames) {
		if err := s.findExisting(ctx, some, there); err != nil {
			return allFailed(failures, err)
		}
	}
	s.noteExisting(slices.Collect(maps.Keys(there))...)
	missing := slices.DeleteFunc(slices.Clone(list), func(m *Template) bool { return there[m.Name] })
	if len(missing) == 0 {
		return failures
	}
	s.setWaiting(true, missing...)
	if err := s.queue.Wait(ctx, s.wantedFor(missing)); err != nil {
		return allFailed(failures, s.timeoutError(err))
	}
	defer s.queue.Next()
	slots := make(chan struct{}, templatesAtOnce)
	var group sync.WaitGroup
	for i, m := range list {
		if there[m.Name] {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			defer func() { // a panic in here would end the process
				if r := recover(); r != nil {
					failures[i] = fmt.Errorf("creating launch template %s failed, which is a mistake in Tenon: %v",
						m.Name, r)
				}
			}()
			failures[i] = s.create(ctx, m)
		})
	}
	group.Wait()
	return failures
}

// allFailed says the same of all.
func allFailed(failures []error, err error) []error {
	for i := range failures {
		failures[i] = err
	}
	return failures
}

// create creates one when it is its turn.
func (s *Store) create(ctx context.Context, m *Template) error {
	if err := s.limiter.Wait(ctx); err != nil {
		return s.timeoutError(err)
	}
	s.setWaiting(false, m)
	_, err := s.api.CreateLaunchTemplate(ctx, m.Input())
	if fault.IsThrottled(err) {
		for s.limiter.Allow() { // others in the account make some, too: what is left is not
		}
	}
	if err != nil && fault.Code(err) != "InvalidLaunchTemplateName.AlreadyExistsException" {
		return fault.Explain("creating a launch template", err)
	}
	s.noteExisting(m.Name)
	return nil
}

// noteExisting remembers that templates exist.
func (s *Store) noteExisting(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.exist[name] = true
		delete(s.wantedSince, name)
	}
}

// wantedFor is for how long one of the templates has been wanted. Those that nobody has asked for again lose their
// place.
func (s *Store) wantedFor(list []*Template) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.now()
	maps.DeleteFunc(s.wantedSince, func(name string, at time.Time) bool {
		return out.Sub(at) >= turnKept && s.creating[name] == nil
	})
	for _, m := range list {
		if at, ok := s.wantedSince[m.Name]; ok && at.Before(out) {
			out = at
		}
	}
	return out
}

// timeoutError is what a launch is told whose templates have not had their turn in time.
func (s *Store) timeoutError(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &cloudprovider.ThrottledError{Queued: true, Cause: fmt.Errorf("creating launch templates: EC2 lets an "+
		"account create about five a second, and %d are waited for; the launch keeps its place and is tried again: %w",
		len(s.wantedSince), err)}
}

func (s *Store) findExisting(ctx context.Context, list []*Template, there map[string]bool) error {
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	pages := ec2.NewDescribeLaunchTemplatesPaginator(s.api, &ec2.DescribeLaunchTemplatesInput{
		Filters: []ec2types.Filter{{Name: new("launch-template-name"), Values: names}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fault.Explain("looking for launch templates", err)
		}
		for i := range page.LaunchTemplates {
			if name := page.LaunchTemplates[i].LaunchTemplateName; name != nil {
				there[*name] = true
			}
		}
	}
	return nil
}
