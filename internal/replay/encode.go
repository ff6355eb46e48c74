package replay

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Write writes a case to a snapshot file.
func Write(w io.Writer, c *Case) error {
	sch, err := newSchema()
	if err != nil {
		return err
	}
	e := &encoder{schema: sch, tables: make(map[reflect.Type]*table)}
	root := e.value(nil, reflect.ValueOf(c).Elem())
	zip := gzip.NewWriter(w)
	if err := e.write(zip, root); err != nil {
		return fmt.Errorf("writing a snapshot file: %w", err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("writing a snapshot file: %w", err)
	}
	return nil
}

// encoder turns values into JSON and collects the shared ones in tables.
type encoder struct {
	schema *schema
	tables map[reflect.Type]*table
}

// table holds the shared values of a type.
type table struct {
	ids  map[place]int
	text []byte
}

// place is where a shared value is in memory: that, and not its content, tells whether it is the same.
type place struct {
	at  uintptr
	len int
}

func (e *encoder) write(w io.Writer, root []byte) error {
	out := fmt.Appendf(nil, "{\"format\":%q,\"version\":%d,\n\"tables\":{", Format, Version)
	for i, t := range e.schema.tables {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "\n%q:[", t.Name())
		if have := e.tables[t]; have != nil {
			out = append(out, have.text...)
		}
		out = append(out, ']')
		if _, err := w.Write(out); err != nil {
			return err
		}
		out = out[:0]
	}
	out = append(append(append(out, "},\n\"case\":"...), root...), "}\n"...)
	_, err := w.Write(out)
	return err
}

// share writes the place of a value in its table, and the value itself if it is not there yet.
func (e *encoder) share(out []byte, in reflect.Type, at place, content func() []byte) []byte {
	t := e.tables[in]
	if t == nil {
		t = &table{ids: make(map[place]int)}
		e.tables[in] = t
	}
	id, known := t.ids[at]
	if !known {
		text := content() // which may add to other tables, and to no part of this one: no type contains itself
		id = len(t.ids)
		t.ids[at] = id
		if id > 0 {
			t.text = append(t.text, ",\n"...)
		}
		t.text = append(t.text, text...)
	}
	return strconv.AppendInt(out, int64(id), 10)
}

func (e *encoder) value(out []byte, v reflect.Value) []byte {
	switch v.Type() {
	case timeType():
		return text(out, v.Interface().(time.Time).UTC().Format(time.RFC3339Nano))
	case valuesType():
		return e.value(out, reflect.ValueOf(v.Interface().(require.Values).Form()))
	case labelsType():
		if v.Len() == 0 {
			return e.list(out, v)
		}
		return e.share(out, v.Type(), place{v.Pointer(), v.Len()}, func() []byte { return e.list(nil, v) })
	}
	switch v.Kind() {
	case reflect.Pointer:
		return e.pointer(out, v)
	case reflect.Struct:
		return e.object(out, v)
	case reflect.Slice:
		return e.list(out, v)
	case reflect.Array:
		n := v.Len()
		for n > 0 && v.Index(n-1).IsZero() {
			n--
		}
		return e.items(out, v, n)
	case reflect.Map:
		return e.entries(out, v)
	}
	return scalar(out, v)
}

func (e *encoder) pointer(out []byte, v reflect.Value) []byte {
	if v.IsNil() {
		return append(out, "null"...)
	}
	in, ok := shared(v.Type())
	if !ok {
		return e.value(out, v.Elem())
	}
	return e.share(out, in, place{at: v.Pointer()}, func() []byte {
		switch p := v.Interface().(type) {
		case *resource.Names:
			return e.items(nil, reflect.ValueOf(p.Extra()), len(p.Extra()))
		case *cluster.Catalog:
			return e.object(nil, reflect.ValueOf(goods{p.Types, p.Offerings}))
		}
		return e.object(nil, v.Elem())
	})
}

func (e *encoder) object(out []byte, v reflect.Value) []byte {
	out = append(out, '{')
	first := true
	for _, f := range e.schema.fields[v.Type()] {
		item := v.Field(f.index)
		if item.IsZero() {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(append(append(out, '"'), f.name...), '"', ':')
		out = e.value(out, item)
	}
	return append(out, '}')
}

func (e *encoder) list(out []byte, v reflect.Value) []byte {
	if v.IsNil() {
		return append(out, "null"...)
	}
	return e.items(out, v, v.Len())
}

func (e *encoder) items(out []byte, v reflect.Value, n int) []byte {
	out = append(out, '[')
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = e.value(out, v.Index(i))
	}
	return append(out, ']')
}

func (e *encoder) entries(out []byte, v reflect.Value) []byte {
	items := make(map[string]reflect.Value, v.Len())
	for _, key := range v.MapKeys() {
		items[key.String()] = v.MapIndex(key)
	}
	out = append(out, '{')
	for i, key := range slices.Sorted(maps.Keys(items)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(text(out, key), ':')
		out = e.value(out, items[key])
	}
	return append(out, '}')
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
