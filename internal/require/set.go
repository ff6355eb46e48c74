package require

import (
	"slices"
	"strings"
)

// Entry is what is asked of one key.
type Entry struct {
	Key    string
	Values Values
	// MinValues is how many different values of the key a choice of instance types must keep; 0 for no such wish.
	MinValues int
}

// Set is what is asked of a node's labels: all entries must hold. It is sorted by key, one entry a key. A Set is
// immutable: And and With return new ones.
type Set []Entry

// With returns the set with one more demand.
func (s Set) With(key string, values Values) Set { return s.and(Entry{Key: key, Values: values}) }

// And returns what both sets ask for.
func (s Set) And(t Set) Set {
	for _, e := range t {
		s = s.and(e)
	}
	return s
}

func (s Set) and(e Entry) Set {
	i, found := s.find(e.Key)
	out := make(Set, 0, len(s)+1)
	out = append(out, s[:i]...)
	if !found {
		return append(append(out, e), s[i:]...)
	}
	e.Values = s[i].Values.And(e.Values)
	e.MinValues = max(e.MinValues, s[i].MinValues)
	return append(append(out, e), s[i+1:]...)
}

// Replace returns the set with the key's values exchanged, whatever they were.
func (s Set) Replace(key string, values Values) Set {
	minValues := 0
	if i, found := s.find(key); found {
		minValues = s[i].MinValues
	}
	return s.Without(key).and(Entry{Key: key, Values: values, MinValues: minValues})
}

// WithMin returns the set with a wish for at least n different values of the key.
func (s Set) WithMin(key string, n int) Set {
	return s.and(Entry{Key: key, Values: Anything(), MinValues: n})
}

// Without returns the set without the key.
func (s Set) Without(key string) Set {
	i, found := s.find(key)
	if !found {
		return s
	}
	return append(slices.Clone(s[:i]), s[i+1:]...)
}

// Get returns what is asked of a key; found is false if nothing is.
func (s Set) Get(key string) (values Values, found bool) {
	i, found := s.find(key)
	if !found {
		return Anything(), false
	}
	return s[i].Values, true
}

func (s Set) find(key string) (int, bool) {
	return slices.BinarySearchFunc(s, key, func(e Entry, key string) int { return strings.Compare(e.Key, key) })
}

// Miss returns the first key whose demand the labels do not meet; ok is true if they meet all.
func (s Set) Miss(label func(key string) (string, bool)) (key string, ok bool) {
	for _, e := range s {
		value, present := label(e.Key)
		if !e.Values.Matches(value, present) {
			return e.Key, false
		}
	}
	return "", true
}

// Conflict returns the first key of which nothing is left to choose; ok is true if there is none.
func (s Set) Conflict() (key string, ok bool) {
	for _, e := range s {
		if e.Values.IsEmpty() {
			return e.Key, false
		}
	}
	return "", true
}

// String writes the set as people write a selector.
func (s Set) String() string {
	parts := make([]string, len(s))
	for i, e := range s {
		parts[i] = e.Key + " " + e.Values.String()
	}
	return strings.Join(parts, "; ")
}
