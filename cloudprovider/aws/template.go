package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	// mostNames is how many values EC2 takes in one filter.
	mostNames = 200
	// templatesAtOnce is how many launch templates are created at the same time.
	templatesAtOnce = 4
	// EC2 lets an account create launch templates fifty times at once and then five times a second. Others in the account do, too.
	templatesBurst    = 40
	templatesInterval = 220 * time.Millisecond
	// templatesLimit is how long a launch waits for its templates before it is told to come again. It then has its old place in the
	// line, as long as it comes within placeKept.
	templatesLimit = 35 * time.Second
	placeKept      = 10 * time.Minute
	// tooShort is the time in which it is not worth while to begin with a template that somebody else has not made in time.
	tooShort = time.Second
)

// template is a launch template as it is to be. Its name derives from its content, so it never changes.
type template struct {
	name string
	data *ec2types.RequestLaunchTemplateData
	tags map[string]string
}

// newTemplate makes the template of a blueprint.
func newTemplate(b *blueprint) (*template, error) {
	data, err := b.data()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal([]any{data, b.tags})
	if err != nil {
		return nil, fmt.Errorf("naming a launch template: %w", err)
	}
	sum := sha256.Sum256(text)
	return &template{name: awsv1.LaunchTemplatePrefix + hex.EncodeToString(sum[:10]), data: data, tags: b.tags}, nil
}

// input is the call that creates the template.
func (t *template) input() *ec2.CreateLaunchTemplateInput {
	// By this tag Karpenter finds the templates of its cluster, should it run again.
	tags := maps.Clone(t.tags)
	tags[awsv1.Group+"/cluster"] = t.tags[awsv1.EKSClusterNameTagKey]
	return &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: new(t.name),
		LaunchTemplateData: t.data,
		TagSpecifications:  []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: tagList(tags)}},
	}
}

// templates makes sure that launch templates exist. What it remembers is only a hint: a launch that finds a template gone
// says so (forget) and has it made again.
type templates struct {
	api EC2API
	// pace is that of creating them. turns are given to one launch at a time, which creates all of its own: so some launches have
	// theirs soon instead of each a few.
	pace  *bucket
	turns *turns

	mu sync.Mutex
	// wanted is since when those that don't exist are wanted.
	wanted map[string]time.Time
	exist  map[string]bool
	making map[string]*making
	// used is when each was last asked for.
	used map[string]time.Time
	now  func() time.Time
	// drawings are templates as they are to be, by what they are made from: thousands of claims ask for the same.
	drawings map[drawing]*template
}

// making is a template that somebody is making.
type making struct {
	// done is closed when it is there, or is not going to be.
	done chan struct{}
	// inLine says that whoever makes it waits for a turn: EC2 is not being asked.
	inLine bool
	// err is why it was not made; final says that it is the answer for all who wait. It is not if somebody else may have more luck:
	// whoever was to make it has given up or has not had a turn in time.
	err   error
	final bool
}

// drawing is what a template is made from: the key of a blueprint, and a mold.
type drawing struct {
	of   [32]byte
	mold mold
}

// mostDrawings is how many drawings are kept.
const mostDrawings = 5000

func newTemplates(api EC2API, now func() time.Time) *templates {
	return &templates{api: api, pace: newBucket(templatesBurst, templatesInterval, time.Now), turns: &turns{}, wanted: map[string]time.Time{},
		exist: map[string]bool{}, making: map[string]*making{}, used: map[string]time.Time{}, now: now, drawings: map[drawing]*template{}}
}

// drawn is the template of a blueprint with a mold. The key is the blueprint's.
func (t *templates) drawn(key [32]byte, b *blueprint, m mold) (*template, error) {
	of := drawing{key, m}
	t.mu.Lock()
	have := t.drawings[of]
	t.mu.Unlock()
	if have != nil {
		return have, nil
	}
	with := *b
	with.mold = m
	made, err := newTemplate(&with)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.drawings) >= mostDrawings {
		clear(t.drawings)
	}
	t.drawings[of] = made
	return made, nil
}

// usedSince tells whether the template was asked for after the time.
func (t *templates) usedSince(name string, at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used[name].After(at)
}

// ensure creates those that don't exist. Each is created by one caller; others who need it wait for that one, and what EC2 says to that
// one is the answer for all: it would say the same to each.
func (t *templates) ensure(ctx context.Context, wanted map[string]*template) error {
	ctx, cancel := context.WithTimeout(ctx, templatesLimit)
	defer cancel()
	for {
		mine, others := t.take(wanted)
		if len(mine) > 0 {
			failures := t.make(ctx, mine)
			t.release(ctx, mine, failures)
			if err := foremost(failures); err != nil {
				return err
			}
		}
		if len(others) == 0 {
			return nil
		}
		for _, other := range others {
			if err := t.await(ctx, other); err != nil {
				return err
			}
		}
		// Whoever was to make them may have given up: look again.
	}
}

// await waits for a template that somebody else is making.
func (t *templates) await(ctx context.Context, of *making) error {
	select {
	case <-of.done:
		if until, _ := ctx.Deadline(); of.err == nil || !of.final && (time.Until(until) > tooShort || errors.Is(of.err, context.Canceled)) {
			return nil
		}
		return of.err
	case <-ctx.Done():
	}
	t.mu.Lock()
	inLine := of.inLine
	t.mu.Unlock()
	if inLine {
		return t.late(ctx.Err())
	}
	return fault.Explain("waiting for EC2 to answer another launch about the same launch templates", ctx.Err())
}

// foremost is the failure to tell of: not that there was no turn if there is another. Nil if all went well.
func foremost(failures []error) error {
	var out error
	for _, err := range failures {
		if err != nil && (out == nil || cloudprovider.IsQueued(out)) {
			out = err
		}
	}
	return out
}

// take divides what is not known to exist into what the caller has to make and what others are making.
func (t *templates) take(wanted map[string]*template) (mine []*template, others []*making) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		t.used[name] = t.now()
		if t.exist[name] {
			continue
		}
		if other := t.making[name]; other != nil {
			others = append(others, other)
			continue
		}
		if _, waits := t.wanted[name]; !waits {
			t.wanted[name] = t.now()
		}
		t.making[name] = &making{done: make(chan struct{})}
		mine = append(mine, wanted[name])
	}
	return mine, others
}

// release lets those go on who wait for the templates. The failures are in the same order.
func (t *templates) release(ctx context.Context, mine []*template, failures []error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, m := range mine {
		of := t.making[m.name]
		of.err = failures[i]
		of.final = !cloudprovider.IsQueued(of.err) && !gaveUp(ctx, of.err)
		close(of.done)
		delete(t.making, m.name)
	}
}

// gaveUp tells whether the error is only that the caller's own time is over.
func gaveUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// line notes whether templates that are being made wait for a turn.
func (t *templates) line(waits bool, list ...*template) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range list {
		t.making[m.name].inLine = waits
	}
}

// forget has the templates looked for again.
func (t *templates) forget(names ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		delete(t.exist, name)
		delete(t.used, name)
	}
}

// make asks which of the templates exist and creates the others. It says for each why it was not made; nil if it is there.
func (t *templates) make(ctx context.Context, list []*template) []error {
	there := map[string]bool{}
	failures := make([]error, len(list))
	for some := range slices.Chunk(list, mostNames) {
		if err := t.look(ctx, some, there); err != nil {
			return fill(failures, err)
		}
	}
	t.note(slices.Collect(maps.Keys(there))...)
	missing := slices.DeleteFunc(slices.Clone(list), func(m *template) bool { return there[m.name] })
	if len(missing) == 0 {
		return failures
	}
	t.line(true, missing...)
	if err := t.turns.enter(ctx, t.since(missing)); err != nil {
		return fill(failures, t.late(err))
	}
	defer t.turns.leave()
	slots := make(chan struct{}, templatesAtOnce)
	var group sync.WaitGroup
	for i, m := range list {
		if there[m.name] {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			defer func() { // a panic in here would end the process
				if r := recover(); r != nil {
					failures[i] = fmt.Errorf("creating launch template %s failed, which is a mistake in Tenon: %v", m.name, r)
				}
			}()
			failures[i] = t.create(ctx, m)
		})
	}
	group.Wait()
	return failures
}

// fill says the same of all.
func fill(failures []error, err error) []error {
	for i := range failures {
		failures[i] = err
	}
	return failures
}

// create creates one when it is its turn.
func (t *templates) create(ctx context.Context, m *template) error {
	if err := t.pace.pass(ctx); err != nil {
		return t.late(err)
	}
	t.line(false, m)
	_, err := t.api.CreateLaunchTemplate(ctx, m.input())
	if fault.IsThrottled(err) {
		t.pace.empty()
	}
	if err != nil && fault.Code(err) != "InvalidLaunchTemplateName.AlreadyExistsException" {
		return fault.Explain("creating a launch template", err)
	}
	t.note(m.name)
	return nil
}

// note remembers that templates exist.
func (t *templates) note(names ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		t.exist[name] = true
		delete(t.wanted, name)
	}
}

// since is for how long one of the templates has been wanted. Those that nobody has asked for again lose their place.
func (t *templates) since(list []*template) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.now()
	maps.DeleteFunc(t.wanted, func(name string, at time.Time) bool { return out.Sub(at) >= placeKept && t.making[name] == nil })
	for _, m := range list {
		if at, ok := t.wanted[m.name]; ok && at.Before(out) {
			out = at
		}
	}
	return out
}

// late is what a launch is told whose templates have not had their turn in time.
func (t *templates) late(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &cloudprovider.ThrottledError{Queued: true, Cause: fmt.Errorf("creating launch templates: EC2 lets an account create about five a second, and %d are waited for; the launch keeps its place and is tried again: %w",
		len(t.wanted), err)}
}

func (t *templates) look(ctx context.Context, list []*template, there map[string]bool) error {
	var names []string
	for _, m := range list {
		names = append(names, m.name)
	}
	pages := ec2.NewDescribeLaunchTemplatesPaginator(t.api, &ec2.DescribeLaunchTemplatesInput{
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

// tagList writes tags as EC2 takes them, sorted.
func tagList(tags map[string]string) []ec2types.Tag {
	out := make([]ec2types.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, ec2types.Tag{Key: new(key), Value: new(tags[key])})
	}
	return out
}
