package webhook

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// standIns are values that the API's types can read, in place of those of an object that they can't: the API server has
// stored these, or it would not ask. The types carry a stand-in to where its value belongs in the other version, and
// there the value takes its place again.
type standIns struct {
	// text is the object; no stand-in occurs in it.
	text string
	// count is how many were tried.
	count int
	// of is what stands in, and for what.
	of map[any]any
}

func newStandIns(text []byte) *standIns { return &standIns{text: string(text), of: map[any]any{}} }

// fields replaces what a type can't read in an object. What nothing can stand in for is taken out.
func (s *standIns) fields(t reflect.Type, object map[string]any) {
	for key, value := range object {
		inner := child(t, key)
		if inner == nil {
			continue
		}
		readable, ok := s.value(inner, value)
		if !ok {
			delete(object, key)
			continue
		}
		object[key] = readable
	}
}

// value returns a value that a type can read; false if there is none.
func (s *standIns) value(t reflect.Type, value any) (any, bool) {
	if value == nil && t.Kind() == reflect.Pointer {
		return nil, true
	}
	if t = plain(t); isLeaf(t) {
		return s.leaf(t, value)
	}
	switch v := value.(type) {
	case nil:
		return nil, true
	case map[string]any:
		if t.Kind() == reflect.Slice {
			return nil, false
		}
		s.fields(t, v)
		return v, true
	case []any:
		inner := item(t)
		if inner == nil {
			return nil, false
		}
		for i := range v {
			v[i], _ = s.value(inner, v[i])
		}
		return v, true
	}
	return nil, false
}

func (s *standIns) leaf(t reflect.Type, value any) (any, bool) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	if json.Unmarshal(text, reflect.New(t).Interface()) == nil {
		return value, true
	}
	for {
		s.count++
		made := standIn(t, s.count)
		if made == nil {
			return nil, false
		}
		if !strings.Contains(s.text, fmt.Sprint(made)) {
			s.of[made] = value
			return made, true
		}
	}
}

// standIn makes a value of a type, written as the type writes it: another one for each number. It is nil if a type has
// too few.
func standIn(t reflect.Type, n int) any {
	const first = 1_601_000_001 // fits into 32 bits; all that follow are odd, so that no zero ends them
	number := fmt.Sprint(first + 2*n)
	switch reflect.New(t).Interface().(type) {
	case *metav1.Time:
		return time.Date(1601, 1, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339)
	case *metav1.Duration, *v1.NillableDuration:
		return (first*time.Second + time.Duration(n)).String()
	case *resource.Quantity:
		return number
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return json.Number(number)
	case reflect.String:
		return "stands in as " + number
	}
	return nil
}

// back puts the values in where their stand-ins have come to, be it as JSON in an annotation.
func (s *standIns) back(value any) any {
	if s == nil || len(s.of) == 0 {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = s.back(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = s.back(inner)
		}
	case string:
		if original, ok := s.of[v]; ok {
			return original
		}
		return s.inText(v)
	case json.Number:
		if original, ok := s.of[v]; ok {
			return original
		}
	}
	return value
}

func (s *standIns) inText(text string) string {
	for made, value := range s.of {
		if !strings.Contains(text, fmt.Sprint(made)) {
			continue
		}
		old, err := json.Marshal(made)
		if err != nil {
			continue
		}
		if original, err := json.Marshal(value); err == nil {
			text = strings.ReplaceAll(text, string(old), string(original))
		}
	}
	return text
}
