package ownership

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// namer is an EC2 that writes tags, and answers at once unless it is to hang.
type namer struct {
	API
	hang bool

	mu     sync.Mutex
	tagged int
}

func (m *namer) CreateTags(ctx context.Context, _ *ec2.CreateTagsInput, _ ...func(*ec2.Options)) (*ec2.CreateTagsOutput,
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

// TestNamesEndWithTheLeader: after the process has been told to stop nothing more is written, and nobody is left who
// would.
func TestNamesEndWithTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &namer{hang: true}
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
	namer
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
		tagger := newNameTagger(&namer{}, nil, func(string) {
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
