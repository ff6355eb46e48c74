package replay

import "reflect"

// collect puts the shared values that a value is made of into their tables.
func (e *encoder) collect(v reflect.Value) {
	if e.isPlain(v.Type()) {
		return
	}
	if in, at, ok := sharedPlaceOf(v); ok {
		e.share(in, at, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			e.collect(v.Elem())
		}
	case reflect.Struct:
		for _, f := range e.schema.fields[v.Type()] {
			e.collect(v.Field(f.index))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			e.collect(v.Index(i))
		}
	case reflect.Map:
		for _, key := range sortedKeys(v) {
			e.collect(v.MapIndex(key))
		}
	}
}

// share puts a value into its table, after what it is made of itself; no type contains itself.
func (e *encoder) share(in reflect.Type, at sharedPlace, v reflect.Value) {
	t := e.tables[in]
	if t == nil {
		t = &table{ids: make(map[sharedPlace]int)}
		e.tables[in] = t
	}
	if _, known := t.ids[at]; known {
		return
	}
	t.ids[at] = len(t.values)
	t.values = append(t.values, v)
	inner := content(v)
	if inner.Kind() == reflect.Slice { // labels and names are text
		return
	}
	for _, f := range e.schema.fields[inner.Type()] {
		e.collect(inner.Field(f.index))
	}
}

// isPlain reports whether no value of the type holds shared ones.
func (e *encoder) isPlain(t reflect.Type) bool {
	plain, known := e.plain[t]
	if known {
		return plain
	}
	plain = true
	if _, stands := shared(t); stands {
		plain = false
	} else if t != timeType() && t != valuesType() {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			plain = e.isPlain(t.Elem())
		case reflect.Struct:
			for _, f := range e.schema.fields[t] {
				plain = e.isPlain(t.Field(f.index).Type) && plain
			}
		}
	}
	e.plain[t] = plain
	return plain
}
