package query

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Decode reads a form into the structure that input points to. Names that the structure has no member for are left
// alone, as EC2 does.
func (n *Names) Decode(form url.Values, input any) error {
	return n.readStruct(tree(form), reflect.ValueOf(input).Elem())
}

// branch is a form by the parts of its names.
type branch struct {
	value string
	set   bool
	next  map[string]*branch
}

func tree(form url.Values) *branch {
	root := &branch{}
	for name, values := range form {
		if len(values) == 0 {
			continue
		}
		b := root
		for part := range strings.SplitSeq(name, ".") {
			if b.next == nil {
				b.next = map[string]*branch{}
			}
			if b.next[part] == nil {
				b.next[part] = &branch{}
			}
			b = b.next[part]
		}
		b.value, b.set = values[0], true
	}
	return root
}

func (n *Names) readStruct(b *branch, v reflect.Value) error {
	for _, m := range n.membersOf(v.Type()) {
		sub := b.next[m.request]
		if sub == nil {
			continue
		}
		if err := n.read(sub, v.Field(m.index)); err != nil {
			return fmt.Errorf("reading %s: %w", m.request, err)
		}
	}
	return nil
}

func (n *Names) read(b *branch, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return n.read(b, v.Elem())
	case reflect.Slice:
		return n.readList(b, v)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return readTime(b.value, v)
		}
		return n.readStruct(b, v)
	}
	return readScalar(b.value, v)
}

// readList reads Name.1, Name.2 and so on, up to the first number that is missing.
func (n *Names) readList(b *branch, v reflect.Value) error {
	for i := 1; ; i++ {
		sub := b.next[strconv.Itoa(i)]
		if sub == nil {
			return nil
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if err := n.read(sub, item); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		v.Set(reflect.Append(v, item))
	}
}

func readTime(text string, v reflect.Value) error {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("reading a time: %w", err)
	}
	v.Set(reflect.ValueOf(t))
	return nil
}

func readScalar(text string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("reading a boolean: %w", err)
		}
		v.SetBool(b)
	case reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("reading a number: %w", err)
		}
		v.SetInt(i)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("reading a number: %w", err)
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("no form for a %s", v.Type())
	}
	return nil
}
