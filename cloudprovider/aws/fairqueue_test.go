package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// maker is an EC2 that knows launch templates and tags, and answers at once.
type maker struct {
	EC2API
	// look and create, if they are there, are what happens when templates are looked for and created.
	look, create func(context.Context) error

	mu    sync.Mutex
	looks int
	// made are the templates that were asked for, tagged is how many tags were.
	made   []string
	tagged int
	hang   bool
}

func (m *maker) DescribeLaunchTemplates(ctx context.Context, _ *ec2.DescribeLaunchTemplatesInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	m.mu.Lock()
	m.looks++
	look := m.look
	m.mu.Unlock()
	if look != nil {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	return &ec2.DescribeLaunchTemplatesOutput{}, nil
}

func (m *maker) CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput,
	_ ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error) {
	m.mu.Lock()
	m.made = append(m.made, *in.LaunchTemplateName)
	create := m.create
	m.mu.Unlock()
	if create != nil {
		if err := create(ctx); err != nil {
			return nil, err
		}
	}
	return &ec2.CreateLaunchTemplateOutput{}, nil
}

func (m *maker) CreateTags(ctx context.Context, _ *ec2.CreateTagsInput, _ ...func(*ec2.Options)) (*ec2.CreateTagsOutput,
	error) {
	m.mu.Lock()
	m.tagged++
	m.mu.Unlock()
	if m.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &ec2.CreateTagsOutput{}, nil
}

// TestHundredsOfNewTemplates has more launches with a template of their own than EC2 lets us make in the time that a
// launch has. Who has to come again keeps the place: all of the first are made before any of those that come later,
// each once.
func TestHundredsOfNewTemplates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &maker{}
		ts := newTemplateStore(api, time.Now)
		var all sync.WaitGroup
		var mu sync.Mutex
		late := 0
		launch := func(name string) {
			all.Go(func() {
				wanted := map[string]*template{name: {name: name, data: &ec2types.RequestLaunchTemplateData{},
					tags: map[string]string{}}}
				for {
					err := ts.ensure(t.Context(), wanted)
					if err == nil {
						return
					}
					if !cloudprovider.IsThrottled(err) || !cloudprovider.IsQueued(err) || !strings.Contains(err.Error(),
						"keeps its place") {
						t.Errorf("%s is told %v", name, err)
					}
					mu.Lock()
					late++
					mu.Unlock()
					time.Sleep(time.Second)
				}
			})
		}
		began := time.Now()
		for i := range 300 {
			launch(fmt.Sprintf("first-%03d", i))
		}
		time.Sleep(templatesLimit - time.Second)
		for i := range 50 {
			launch(fmt.Sprintf("later-%03d", i))
		}
		all.Wait()
		if late == 0 {
			t.Error("nobody had to come again: the test is about nothing")
		}
		if took := time.Since(began); took > (350-templatesBurst)*templatesInterval+5*time.Second {
			t.Errorf("it took %s", took)
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(api.made)))); n != 350 || len(api.made) != 350 {
			t.Errorf("%d templates were made in %d calls, want 350", n, len(api.made))
		}
		overtaken := 0
		for _, name := range api.made[300:] {
			if strings.HasPrefix(name, "first-") {
				overtaken++
			}
		}
		// While those who were late are away for a moment others may go.
		if overtaken > 6 {
			t.Errorf("%d launches were overtaken", overtaken)
		}
	})
}

// TestNamesEndWithTheLeader: after the process has been told to stop nothing more is written, and nobody is left who
// would.
func TestNamesEndWithTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &maker{hang: true}
		life, stop := context.WithCancel(t.Context())
		tagger := newNameTagger(api, nil, func(string) {})
		tagger.setLifetime(life)
		for i := range 10 * namesBurst {
			tagger.add(fmt.Sprintf("i-%d", i), "claim")
		}
		synctest.Wait()
		before := api.tagged
		stop()
		began := time.Now()
		synctest.Wait()
		tagger.mu.Lock()
		defer tagger.mu.Unlock()
		if tagger.workers != 0 || time.Since(began) > 0 {
			t.Errorf("%d are at work after the end", tagger.workers)
		}
		if before != namesAtOnce || api.tagged != before {
			t.Errorf("%d names were being written, %d were begun after the end", before, api.tagged-before)
		}
	})
}

// panicking fails at every other name.
type panicking struct {
	maker
	calls atomic.Int32
}

func (p *panicking) CreateTags(ctx context.Context, in *ec2.CreateTagsInput,
	_ ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error) {
	if p.calls.Add(1)%2 == 1 {
		panic("boom")
	}
	return &ec2.CreateTagsOutput{}, nil
}

// A panic while a name is written ends nothing: it is told, and the name is tried again like any other that failed.
func TestNamesGoOnAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &panicking{}
		var told, named atomic.Int32
		tagger := newNameTagger(api, &recovery.Guard{Tell: func(recovery.Failure) {
			told.Add(1)
		}}, func(string) { named.Add(1) })
		for i := range 6 {
			tagger.add(fmt.Sprintf("i-%d", i), "claim")
		}
		synctest.Wait()
		if named.Load() == 0 || told.Load() == 0 || told.Load()+named.Load() != api.calls.Load() {
			t.Errorf("%d named, told %d times of %d calls", named.Load(), told.Load(), api.calls.Load())
		}
		tagger.mu.Lock()
		defer tagger.mu.Unlock()
		if tagger.workers != 0 || len(tagger.queue) != 0 || len(tagger.queued) != 0 {
			t.Errorf("%d are at work, %d names are left, %d are remembered", tagger.workers, len(tagger.queue),
				len(tagger.queued))
		}
	})
}

// If it is the one who writes names that fails, another takes over with the next name.
func TestNamesBeginAnewAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		named := 0
		tagger := newNameTagger(&maker{}, nil, func(string) {
			if named++; broken {
				panic("boom")
			}
		})
		tagger.add("i-1", "claim")
		synctest.Wait()
		broken = false
		tagger.add("i-2", "claim")
		synctest.Wait()
		if tagger.workers != 0 || named != 2 {
			t.Errorf("%d are at work, %d were named", tagger.workers, named)
		}
	})
}
