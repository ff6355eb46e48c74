package steadywatch

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func object(version int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version)}}
}

func TestResume(t *testing.T) {
	m := NewMemory()
	if got := m.Resume("a", "0"); got != "0" {
		t.Errorf("an empty memory resumes at %q, want what was asked", got)
	}
	m.Reached("a", "7")
	m.Reached("a", "")
	m.Reached("a", "0")
	for _, c := range []struct{ selector, asked, want string }{
		{"a", "0", "7"}, {"a", "", "7"}, {"a", "3", "3"}, {"b", "0", "0"},
	} {
		if got := m.Resume(c.selector, c.asked); got != c.want {
			t.Errorf("Resume(%q, %q) = %q, want %q", c.selector, c.asked, got, c.want)
		}
	}
}

func TestFollowReadsAheadAndKeepsOrder(t *testing.T) {
	m := NewMemory()
	source := watch.NewFake()
	followed := m.Follow("a", source)
	// The source is unbuffered: a thousand events pass only if they are taken
	// before anybody reads the other side.
	const events = 1000
	for i := 1; i <= events; i++ {
		source.Modify(object(i))
	}
	for i := 1; i <= events; i++ {
		event := next(t, followed)
		if got := versionOf(event); got != strconv.Itoa(i) {
			t.Fatalf("event %d has version %s", i, got)
		}
	}
	source.Stop()
	if _, open := <-followed.ResultChan(); open {
		t.Error("the watch goes on after its source has ended")
	}
	if got := m.Resume("a", "0"); got != strconv.Itoa(events) {
		t.Errorf("resumes at %s, want %d", got, events)
	}
}

func TestMemoryCountsOnlyWhatWasRead(t *testing.T) {
	m := NewMemory()
	source := watch.NewFake()
	followed := m.Follow("a", source)
	for i := 1; i <= 5; i++ {
		source.Add(object(i))
	}
	next(t, followed)
	next(t, followed)
	followed.Stop()
	// Stopping may race with the handing over of one more event, never more.
	for range followed.ResultChan() {
	}
	if got := m.Resume("a", "0"); got != "2" && got != "3" {
		t.Errorf("resumes at %s although 2 events were read", got)
	}
}

func TestErrorsCarryNoVersion(t *testing.T) {
	m := NewMemory()
	m.Reached("a", "5")
	source := watch.NewFake()
	followed := m.Follow("a", source)
	source.Error(&metav1.Status{ListMeta: metav1.ListMeta{ResourceVersion: "9"}})
	if event := next(t, followed); event.Type != watch.Error {
		t.Fatalf("got %v, want the error", event.Type)
	}
	source.Stop()
	<-followed.ResultChan()
	if got := m.Resume("a", "0"); got != "5" {
		t.Errorf("resumes at %s, want 5", got)
	}
}

func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-w.ResultChan():
		if !open {
			t.Fatal("the watch ended")
		}
		return event
	case <-time.After(20 * time.Second):
		t.Fatal("no event in 20 s")
	}
	return watch.Event{}
}
