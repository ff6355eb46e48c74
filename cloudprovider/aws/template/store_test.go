package template

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// maker is an EC2 that knows launch templates, and answers at once.
type maker struct {
	API
	// look and create, if they are there, are what happens when templates are looked for and created.
	look, create func(context.Context) error

	mu    sync.Mutex
	looks int
	// made are the templates that were asked for.
	made []string
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

// TestHundredsOfNewTemplates has more launches with a template of their own than EC2 lets us make in the time that a
// launch has. Who has to come again keeps the place: all of the first are made before any of those that come later,
// each once.
func TestHundredsOfNewTemplates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &maker{}
		ts := NewStore(api, time.Now)
		var all sync.WaitGroup
		var mu sync.Mutex
		late := 0
		launch := func(name string) {
			all.Go(func() {
				wanted := map[string]*Template{name: {Name: name, Data: &ec2types.RequestLaunchTemplateData{},
					Tags: map[string]string{}}}
				for {
					err := ts.Ensure(t.Context(), wanted)
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
