package require

import (
	"math/rand"
	"slices"
	"strconv"
	"testing"
)

// The twin keeps the raw terms and judges each one by its definition in the Kubernetes API.
type twinTerm struct {
	op     Operator
	values []string
}

func (t twinTerm) matches(value string, present bool) bool {
	switch t.op {
	case In:
		return present && slices.Contains(t.values, value)
	case NotIn:
		return !present || !slices.Contains(t.values, value)
	case Exists:
		return present
	case DoesNotExist:
		return !present
	}
	n, err := strconv.Atoi(value)
	if !present || err != nil {
		return false
	}
	limit, _ := strconv.Atoi(t.values[0])
	switch t.op {
	case Gt:
		return n > limit
	case Lt:
		return n < limit
	case Gte:
		return n >= limit
	default:
		return n <= limit
	}
}

func randomTerm(r *rand.Rand) twinTerm {
	op := []Operator{In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte}[r.Intn(8)]
	t := twinTerm{op: op}
	switch op {
	case In, NotIn:
		for range 1 + r.Intn(3) {
			t.values = append(t.values, []string{"a", "b", "1", "2", "3", "4"}[r.Intn(6)])
		}
	case Gt, Lt, Gte, Lte:
		t.values = []string{strconv.Itoa(r.Intn(5))}
	}
	return t
}

// states are all the values that random terms can tell apart.
func states() []string { return []string{"a", "b", "c", "-1", "0", "1", "2", "3", "4", "5", "true"} }

func TestValuesAgainstDumbTwin(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	for range 20000 {
		v, terms := Anything(), []twinTerm(nil)
		for range 1 + r.Intn(4) {
			term := randomTerm(r)
			made, ok := Make(term.op, term.values)
			if !ok {
				t.Fatalf("Make(%s, %v) failed", term.op, term.values)
			}
			v, terms = v.And(made), append(terms, term)
		}
		twin := func(value string, present bool) bool {
			for _, term := range terms {
				if !term.matches(value, present) {
					return false
				}
			}
			return true
		}
		for _, value := range states() {
			if got, want := v.Matches(value, true), twin(value, true); got != want {
				t.Fatalf("%v: %q matches=%v, twin says %v", terms, value, got, want)
			}
		}
		if got, want := v.Matches("", false), twin("", false); got != want {
			t.Fatalf("%v: absent matches=%v, twin says %v", terms, got, want)
		}
		if value, ok := v.Pick(); ok && !twin(value, true) {
			t.Fatalf("%v: picked %q, which the twin rejects", terms, value)
		}
		if got, want := v.IsEmpty(), !anyMatch(twin); got != want {
			t.Fatalf("%v: empty is %v, the twin says %v", terms, got, want)
		}
		checkTerms(t, v)
	}
}

func anyMatch(twin func(string, bool) bool) bool {
	return twin("", false) || slices.ContainsFunc(states(), func(s string) bool { return twin(s, true) })
}

// checkTerms rebuilds the set from its own operators: they must mean the same.
func checkTerms(t *testing.T, v Values) {
	t.Helper()
	if v.IsEmpty() {
		return
	}
	back := Anything()
	for _, term := range v.Terms() {
		made, _ := Make(term.Op, term.Values)
		back = back.And(made)
	}
	for _, value := range states() {
		if back.Matches(value, true) != v.Matches(value, true) {
			t.Fatalf("%s: terms %v differ at %q", v, v.Terms(), value)
		}
	}
	if back.AllowsAbsent() != v.AllowsAbsent() {
		t.Fatalf("%s: terms %v differ about an absent label", v, v.Terms())
	}
}

func TestBoundsWithEveryNumberExcludedAreEmpty(t *testing.T) {
	build := func(low, high string, except ...string) Values {
		v, _ := Make(Gte, []string{low})
		w, _ := Make(Lte, []string{high})
		x, _ := Make(NotIn, except)
		return v.And(w).And(x)
	}
	for _, c := range []struct {
		v    Values
		want bool
	}{
		{build("3", "3", "3"), true}, {build("3", "3", "4"), false}, {build("-1", "1", "-1", "0", "1"), true},
		{build("9", "11", "10", "11", "9"), true}, {build("9", "12", "10", "11", "9"), false},
		{build("9223372036854775807", "9223372036854775807", "9223372036854775807"), true},
		{build("-9223372036854775808", "9223372036854775807", "0"), false},
	} {
		if c.v.IsEmpty() != c.want {
			t.Errorf("%v (%s): empty is %v, want %v", c.v, c.v, c.v.IsEmpty(), c.want)
		}
		if key, ok := (Set{}).With("k", c.v).Conflict(); ok == c.want {
			t.Errorf("%s: conflict at %q, %v", c.v, key, ok)
		}
	}
}

func TestMakeRejects(t *testing.T) {
	for _, c := range []twinTerm{{Gt, nil}, {Lt, []string{"x"}}, {Gte, []string{"1", "2"}}, {"Near", []string{"1"}}} {
		if v, ok := Make(c.op, c.values); ok {
			t.Errorf("Make(%s, %v) = %s, want a refusal", c.op, c.values, v)
		}
	}
}

func TestIndexAgainstRowByRow(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	keys := []string{"arch", "zone", "size"}
	for range 300 {
		rows := make([]map[string]string, 1+r.Intn(130))
		for i := range rows {
			rows[i] = map[string]string{}
			for _, key := range keys {
				if r.Intn(4) > 0 {
					rows[i][key] = states()[r.Intn(len(states()))]
				}
			}
		}
		idx := NewIndex(len(rows), func(row int, yield func(key, value string)) {
			for key, value := range rows[row] {
				yield(key, value)
			}
		})
		var set Set
		for _, key := range append(keys, "unheard-of") {
			if r.Intn(2) == 0 {
				term := randomTerm(r)
				v, _ := Make(term.op, term.values)
				set = set.With(key, v)
			}
		}
		got := idx.MatchAll(set)
		for i, row := range rows {
			_, want := set.FirstMiss(func(key string) (string, bool) { v, ok := row[key]; return v, ok })
			if got.Has(i) != want {
				t.Fatalf("%s: row %d %v: index says %v, row by row %v", set, i, row, got.Has(i), want)
			}
		}
	}
}

func TestSetReplaceAndSpread(t *testing.T) {
	s := Set{}.With("b", Only("1", "2")).With("a", Only("x")).WithMin("b", 2)
	if got := s.String(); got != "a In [x]; b In [1, 2]" {
		t.Errorf("set reads %q", got)
	}
	s = s.Replace("b", Only("9"))
	if v, _ := s.Get("b"); v.String() != "In [9]" || s[1].MinValues != 2 {
		t.Errorf("replaced set reads %q with minValues %d", s, s[1].MinValues)
	}
	if key, ok := s.With("a", Only("y")).Conflict(); ok || key != "a" {
		t.Errorf("conflict at %q, %v; want a", key, ok)
	}
	idx := NewIndex(3, func(row int, yield func(key, value string)) { yield("fam", []string{"m", "c", "m"}[row]) })
	if n := idx.Spread("fam", AllBits(3)); n != 2 {
		t.Errorf("spread = %d, want 2", n)
	}
}
