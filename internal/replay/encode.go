package replay

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// bufferSize is how much text is kept in memory before it goes on to the file.
const bufferSize = 64 << 10

// Write writes a case to a snapshot file, as a stream: in memory is only which shared values there are.
func Write(w io.Writer, c *Case) error {
	sch, err := newSchema()
	if err != nil {
		return err
	}
	e := &encoder{schema: sch, tables: make(map[reflect.Type]*table), plain: make(map[reflect.Type]bool)}
	root := reflect.ValueOf(c).Elem()
	e.collect(root)
	zip := gzip.NewWriter(w)
	e.out = bufio.NewWriterSize(zip, bufferSize)
	e.document(root)
	if err := e.out.Flush(); err != nil {
		return fmt.Errorf("writing a snapshot file: %w", err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("writing a snapshot file: %w", err)
	}
	return nil
}

// encoder turns values into JSON. Shared ones are collected first, since their tables stand before whoever names them.
type encoder struct {
	schema *schema
	tables map[reflect.Type]*table
	// plain are the types of which it is known whether they hold no shared values.
	plain map[reflect.Type]bool
	// out remembers the first error and writes nothing from then on.
	out *bufio.Writer
	buf []byte // for numbers
}

// table holds the shared values of a type, in the order in which they are met first.
type table struct {
	ids    map[sharedPlace]int
	values []reflect.Value
}

// sharedPlace is where a shared value is in memory: that, and not its content, tells whether it is the same.
type sharedPlace struct {
	at  uintptr
	len int
}

// sharedPlaceOf is the table in which a value stands, and its place; ok is false if it stands in none.
func sharedPlaceOf(v reflect.Value) (in reflect.Type, at sharedPlace, ok bool) {
	if in, ok = shared(v.Type()); !ok {
		return nil, at, false
	}
	if v.Kind() == reflect.Pointer {
		return in, sharedPlace{at: v.Pointer()}, !v.IsNil()
	}
	return in, sharedPlace{v.Pointer(), v.Len()}, v.Len() > 0
}

// content is what is written of a shared value.
func content(v reflect.Value) reflect.Value {
	switch p := v.Interface().(type) {
	case *resource.Names:
		extra := p.Extra()
		if extra == nil {
			extra = []string{}
		}
		return reflect.ValueOf(extra)
	case *cluster.Catalog:
		return reflect.ValueOf(catalogForm{p.Types, p.Offerings})
	}
	if v.Kind() == reflect.Pointer {
		return v.Elem()
	}
	return v
}

// document writes the tables and then the case. Between two shared values it stops if nothing can be written any more.
func (e *encoder) document(root reflect.Value) {
	e.put(fmt.Sprintf("{\"format\":%q,\"version\":%d,\n\"tables\":{", Format, Version))
	for i, t := range e.schema.tables {
		if i > 0 {
			e.put(",")
		}
		e.put(fmt.Sprintf("\n%q:[", t.Name()))
		if have := e.tables[t]; have != nil {
			for j, v := range have.values {
				if j > 0 {
					e.put(",\n")
				}
				if e.content(content(v)); e.failed() {
					return
				}
			}
		}
		e.put("]")
	}
	e.put("},\n\"case\":")
	e.value(root)
	e.put("}\n")
}

// failed reports whether something could not be written.
func (e *encoder) failed() bool {
	_, err := e.out.Write(nil)
	return err != nil
}

func (e *encoder) put(text string) { _, _ = e.out.WriteString(text) } // the error comes again when it is flushed

func (e *encoder) scalar(v reflect.Value) {
	e.buf = scalar(e.buf[:0], v)
	_, _ = e.out.Write(e.buf)
}

func (e *encoder) text(s string) {
	e.buf = text(e.buf[:0], s)
	_, _ = e.out.Write(e.buf)
}

// content writes a shared value itself.
func (e *encoder) content(v reflect.Value) {
	if v.Kind() == reflect.Slice {
		e.items(v, v.Len())
		return
	}
	e.object(v)
}

func (e *encoder) value(v reflect.Value) {
	if in, at, ok := sharedPlaceOf(v); ok {
		e.buf = strconv.AppendInt(e.buf[:0], int64(e.tables[in].ids[at]), 10)
		_, _ = e.out.Write(e.buf)
		return
	}
	switch v.Type() {
	case timeType():
		e.text(v.Interface().(time.Time).UTC().Format(time.RFC3339Nano))
		return
	case valuesType():
		e.value(reflect.ValueOf(v.Interface().(require.Values).Form()))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			e.put("null")
			return
		}
		e.value(v.Elem())
	case reflect.Struct:
		e.object(v)
	case reflect.Slice:
		if v.IsNil() {
			e.put("null")
			return
		}
		e.items(v, v.Len())
	case reflect.Array:
		n := v.Len()
		for n > 0 && v.Index(n-1).IsZero() {
			n--
		}
		e.items(v, n)
	case reflect.Map:
		e.entries(v)
	default:
		e.scalar(v)
	}
}

func (e *encoder) object(v reflect.Value) {
	e.put("{")
	first := true
	for _, f := range e.schema.fields[v.Type()] {
		item := v.Field(f.index)
		if item.IsZero() {
			continue
		}
		if !first {
			e.put(",")
		}
		first = false
		e.put(`"`)
		e.put(f.name)
		e.put(`":`)
		e.value(item)
	}
	e.put("}")
}

func (e *encoder) items(v reflect.Value, n int) {
	e.put("[")
	for i := range n {
		if i > 0 {
			e.put(",")
		}
		e.value(v.Index(i))
	}
	e.put("]")
}

func (e *encoder) entries(v reflect.Value) {
	e.put("{")
	for i, key := range sortedKeys(v) {
		if i > 0 {
			e.put(",")
		}
		e.text(key.String())
		e.put(":")
		e.value(v.MapIndex(key))
	}
	e.put("}")
}

// sortedKeys lists the keys of a map, which are text.
func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

func scalar(out []byte, v reflect.Value) []byte {
	switch {
	case v.Kind() == reflect.Bool:
		return strconv.AppendBool(out, v.Bool())
	case v.CanInt():
		return strconv.AppendInt(out, v.Int(), 10)
	case v.CanUint():
		return strconv.AppendUint(out, v.Uint(), 10)
	case v.CanFloat():
		if f := v.Float(); math.IsInf(f, 0) || math.IsNaN(f) {
			return text(out, strconv.FormatFloat(f, 'g', -1, 64))
		}
		return strconv.AppendFloat(out, v.Float(), 'g', -1, 64)
	}
	return text(out, v.String())
}

// text writes a string. Most need no escaping.
func text(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(out, `""`...) // no string fails
			}
			return append(out, quoted...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}
