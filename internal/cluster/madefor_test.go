package cluster

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestOwnerKeysAreBounded(t *testing.T) {
	keys := make(map[string]string)
	for _, uid := range []string{
		"6f1c2f7e-93a1-4a55-8f7b-5e4c3c0e9b11", "rs", strings.Repeat("u", 300<<10), strings.Repeat("u", 1<<20),
		strings.Repeat("u", 65),
		"a,b", "a=1", "a/b", "a b", "ü", "\x00",
	} {
		for _, namespace := range []string{"blue", "red"} {
			key := OwnerKey(namespace, uid)
			if len(key) > len(namespace)+1+mostUID {
				t.Errorf("the key of a UID of %d bytes has %d", len(uid), len(key))
			}
			if had, twice := keys[key]; twice {
				t.Errorf("%q is the key of %.20q, and of %.20q", key, uid, had)
			}
			keys[key] = uid
			want := []MadeFor{{Owner: key, Try: 3}, {Owner: "x", Try: 1}}
			if got, err := ParseMadeFor(FormatMadeFor(want)); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%q is read again as %v, %v", key, got, err)
			}
			if again := SafeUID(SafeUID(uid)); namespace+"/"+again != key {
				t.Errorf("what is made safe twice is %q, expected %q", again, key)
			}
		}
	}
	const uid = "6f1c2f7e-93a1-4a55-8f7b-5e4c3c0e9b11"
	if key := OwnerKey("blue", uid); key != "blue/"+uid {
		t.Errorf("an ordinary owner has the key %q", key)
	}
}

func TestPodsOfADaemonSet(t *testing.T) {
	d := &Daemon{UID: "ds", Namespace: "infra"}
	for owner, want := range map[string]bool{"infra/ds": true, "other/ds": false, "infra/d": false, "ds": false,
		"": false} {
		if got := d.Owns(&Pod{Namespace: "infra", Owner: owner}); got != want {
			t.Errorf("a pod of owner %q: %v", owner, got)
		}
	}
	if d.Owns(&Pod{Namespace: "other", Owner: "infra/ds"}) {
		t.Error("a pod of another namespace counts")
	}
}

// Of very many workloads on one node the annotation names as many as it may hold, those with a failure first. The
// others are followed on the next such node, so that after a few nodes each is held.
func TestMadeForHasABound(t *testing.T) {
	s := &Snapshot{WorkloadTries: make(map[string]*WorkloadTries)}
	pods := make([]*Pod, 5000)
	for i := range pods {
		pods[i] = &Pod{UID: fmt.Sprint("p", i), Namespace: "jobs", Owner: OwnerKey("jobs",
			fmt.Sprintf("6f1c2f7e-93a1-4a55-8f7b-%012d", i))}
	}
	failed := pods[4900:]
	for _, p := range failed {
		s.WorkloadTries[p.Owner] = &WorkloadTries{Owner: p.Owner, FailedTries: 2}
	}
	list := s.MadeFor(pods)
	if text := FormatMadeFor(list); len(text) > mostAnnotation || len(text) < mostAnnotation*9/10 {
		t.Fatalf("%d of 5000 workloads are named in %d bytes", len(list), len(text))
	}
	tries := make(map[string]int)
	for i, m := range list {
		tries[m.Owner] = m.Try
		if i > 0 && m.Owner <= list[i-1].Owner {
			t.Fatalf("%s comes after %s", m.Owner, list[i-1].Owner)
		}
	}
	for _, p := range failed {
		if tries[p.Owner] != 3 {
			t.Fatalf("%s has failed twice, and is named with try %d", p.Owner, tries[p.Owner])
		}
	}
	nodes := 0
	for left := pods[:4900]; len(left) > 0; nodes++ {
		named := make(map[string]bool)
		for _, m := range s.MadeFor(left) {
			named[m.Owner] = true
		}
		var rest []*Pod
		for _, p := range left {
			if !named[p.Owner] {
				rest = append(rest, p)
			}
		}
		left = rest
	}
	if nodes > 5 {
		t.Errorf("it takes %d nodes until 4,900 workloads are followed", nodes)
	}
}

func TestSeatsHaveABound(t *testing.T) {
	var seats []Seat
	for i := range 20_000 {
		seats = append(seats, Seat{Class: fmt.Sprintf("%016x", i), Count: 1})
	}
	text := FormatSeats(seats)
	if len(text) > mostAnnotation || len(text) < mostAnnotation*9/10 {
		t.Errorf("seats of 20,000 classes take %d bytes", len(text))
	}
	if got, err := ParseSeats(text); err != nil || !reflect.DeepEqual(got, seats[:len(got)]) {
		t.Errorf("they are read again as %d, %v", len(got), err)
	}
}

func TestWhatCanBeReadOfMadeForIsRead(t *testing.T) {
	for text, want := range map[string][]MadeFor{
		"a,b": nil, "a=1,b": {{"a", 1}}, "a=x,b=2": {{"b", 2}}, "a=1,a=2": {{"a", 1}}, "=1": nil, "a=0": nil,
		strings.Repeat("x", 1<<18): nil,
	} {
		got, err := ParseMadeFor(text)
		if err == nil || !reflect.DeepEqual(got, want) || len(err.Error()) > 200 {
			t.Errorf("%.20q: %v, error %v", text, got, err)
		}
	}
}
