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

// Of makes a set of demands in any order; several may be about one key. It takes time in proportion to what is written,
// so it is the way to read a list that somebody else wrote.
func Of(entries []Entry) Set {
	if len(entries) == 0 {
		return nil
	}
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	out := make(Set, 0, len(sorted))
	for i := 0; i < len(sorted); {
		end := i + 1
		for end < len(sorted) && sorted[end].Key == sorted[i].Key {
			end++
		}
		out = append(out, allOf(sorted[i:end]))
		i = end
	}
	return out
}

// allOf joins demands on one key, half by half: one after the other would copy a growing list each time.
func allOf(entries []Entry) Entry {
	if len(entries) == 1 {
		return entries[0]
	}
	half := len(entries) / 2
	return allOf(entries[:half]).and(allOf(entries[half:]))
}

func (e Entry) and(other Entry) Entry {
	return Entry{Key: e.Key, Values: e.Values.And(other.Values), MinValues: max(e.MinValues, other.MinValues)}
}

// And returns what both sets ask for.
func (s Set) And(t Set) Set {
	switch {
	case len(t) == 0:
		return s
	case len(s) == 0:
		return t
	case len(t) == 1:
		return s.and(t[0])
	}
	out := make(Set, 0, len(s)+len(t))
	for len(s) > 0 && len(t) > 0 {
		switch c := strings.Compare(s[0].Key, t[0].Key); {
		case c < 0:
			out, s = append(out, s[0]), s[1:]
		case c > 0:
			out, t = append(out, t[0]), t[1:]
		default:
			out, s, t = append(out, s[0].and(t[0])), s[1:], t[1:]
		}
	}
	return append(append(out, s...), t...)
}

func (s Set) and(e Entry) Set {
	i, found := s.find(e.Key)
	out := make(Set, 0, len(s)+1)
	out = append(out, s[:i]...)
	if !found {
		return append(append(out, e), s[i:]...)
	}
	return append(append(out, s[i].and(e)), s[i+1:]...)
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

// FirstMiss returns the first key whose demand the labels do not meet; ok is true if they meet all.
func (s Set) FirstMiss(label func(key string) (string, bool)) (key string, ok bool) {
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
	var text strings.Builder
	s.Write(&text)
	return text.String()
}

// Write appends what String returns.
func (s Set) Write(text *strings.Builder) {
	for i, e := range s {
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(e.Key)
		text.WriteByte(' ')
		e.Values.write(text)
	}
}

// Size is how many keys and listed values the set has: what it takes to keep it.
func (s Set) Size() int {
	n := len(s)
	for i := range s {
		n += len(s[i].Values.list)
	}
	return n
}
