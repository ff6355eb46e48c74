// Package steadywatch keeps watches of the simulated kubelets cheap. kwok
// always asks to watch from the beginning of time, so that every interrupted
// watch replays every object; and it reads slowly in a rush, which makes the API
// server interrupt it. Together they can feed on each other. This package
// remembers how far a watch has come, and reads ahead of its reader. It touches
// only the watches it is given.
package steadywatch

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
)

// Memory knows how far the watches of one resource have come, by selector.
type Memory struct {
	mu   sync.Mutex
	last map[string]string
}

// NewMemory makes an empty memory.
func NewMemory() *Memory { return &Memory{last: map[string]string{}} }

// Reached notes that the reader of a selector has seen everything up to a
// resource version.
func (m *Memory) Reached(selector, version string) {
	if version == "" || version == "0" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[selector] = version
}

// Resume returns the version from which to watch: the one asked for, unless
// that is the beginning of time and the memory knows better.
func (m *Memory) Resume(selector, asked string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, ok := m.last[selector]; ok && (asked == "" || asked == "0") {
		return last
	}
	return asked
}

// Follow passes the events of w on in order, noting in the memory how far the
// reader has come. It takes events from w as fast as they arrive and holds them
// until they are read.
func (m *Memory) Follow(selector string, w watch.Interface) watch.Interface {
	f := &follower{
		inner:  w,
		out:    make(chan watch.Event),
		stop:   make(chan struct{}),
		arrive: make(chan struct{}, 1),
	}
	go f.collect()
	go f.deliver(func(version string) { m.Reached(selector, version) })
	return f
}

type follower struct {
	inner watch.Interface
	out   chan watch.Event
	once  sync.Once
	stop  chan struct{}
	// arrive has an element when held or ended may have changed.
	arrive chan struct{}

	mu    sync.Mutex
	held  []watch.Event
	ended bool
}

func (f *follower) ResultChan() <-chan watch.Event { return f.out }

func (f *follower) Stop() {
	f.once.Do(func() { close(f.stop) })
	f.inner.Stop()
}

// collect reads everything that the server sends.
func (f *follower) collect() {
	for event := range f.inner.ResultChan() {
		f.add(event, false)
	}
	f.add(watch.Event{}, true)
}

func (f *follower) add(event watch.Event, end bool) {
	f.mu.Lock()
	if end {
		f.ended = true
	} else {
		f.held = append(f.held, event)
	}
	f.mu.Unlock()
	select {
	case f.arrive <- struct{}{}:
	default:
	}
}

// deliver hands the held events to the reader.
func (f *follower) deliver(reached func(version string)) {
	defer close(f.out)
	for {
		events, ended := f.take()
		for _, event := range events {
			select {
			case f.out <- event:
				reached(versionOf(event))
			case <-f.stop:
				return
			}
		}
		if ended && len(events) == 0 {
			return
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-f.arrive:
		case <-f.stop:
			return
		}
	}
}

func (f *follower) take() (events []watch.Event, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events, f.held = f.held, nil
	return events, f.ended
}

// versionOf returns the resource version that an event carries; an error
// carries none.
func versionOf(event watch.Event) string {
	if event.Type == watch.Error {
		return ""
	}
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return ""
	}
	return object.GetResourceVersion()
}
