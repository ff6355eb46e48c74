package replay

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// catalogForm is a catalog as it is written: all else in it follows.
type catalogForm struct {
	Types     []cluster.Type
	Offerings []cluster.Offering
}

// The types that are not written field by field.
func timeType() reflect.Type     { return reflect.TypeFor[time.Time]() }
func valuesType() reflect.Type   { return reflect.TypeFor[require.Values]() }
func namesType() reflect.Type    { return reflect.TypeFor[resource.Names]() }
func catalogType() reflect.Type  { return reflect.TypeFor[cluster.Catalog]() }
func labelsType() reflect.Type   { return reflect.TypeFor[cluster.Labels]() }
func snapshotType() reflect.Type { return reflect.TypeFor[cluster.Snapshot]() }

// writtenAs is the type whose fields stand in the file for a type.
func writtenAs(t reflect.Type) reflect.Type {
	switch t {
	case valuesType():
		return reflect.TypeFor[require.Form]()
	case namesType():
		return reflect.TypeFor[[]string]()
	case catalogType():
		return reflect.TypeFor[catalogForm]()
	}
	return t
}

// isDerived are the fields that are not written, because they follow from others or change nothing.
func isDerived(t reflect.Type, field string) bool {
	return t == snapshotType() && (field == "lookups" || field == "Notes") ||
		t == reflect.TypeFor[schedule.Settings]() && (field == "LastPlacement" || field == "HeldPods" ||
			field == "AllowSqueeze")
}

// shared reports whether values of the type stand in a table: those that pointers to structs point to, and labels, of
// which the planner asks whether two pods have the very same.
func shared(t reflect.Type) (in reflect.Type, ok bool) {
	if t == labelsType() {
		return t, true
	}
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		return t.Elem(), true
	}
	return nil, false
}

// field is a field that is written.
type field struct {
	name  string
	index int
}

// fieldsOf lists the fields of a struct that are written; a field that can be neither written nor left out is an error.
func fieldsOf(t reflect.Type) ([]field, error) {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		if isDerived(t, f.Name) {
			continue
		}
		if !f.IsExported() {
			return nil, fmt.Errorf("%s.%s is not exported: say in internal/replay how it is written", t, f.Name)
		}
		out = append(out, field{f.Name, i})
	}
	if len(out) > 64 {
		return nil, fmt.Errorf("%s has %d fields, and a file keeps count of 64", t, len(out))
	}
	return out, nil
}

// schema is which types are written, and how.
type schema struct {
	fields map[reflect.Type][]field
	// tables in an order in which each needs only those before it.
	tables []reflect.Type
	lines  []string
	seen   map[reflect.Type]bool
}

func newSchema() (*schema, error) {
	s := &schema{fields: make(map[reflect.Type][]field), seen: make(map[reflect.Type]bool)}
	return s, s.walk(reflect.TypeFor[Case]())
}

// walk takes in a type and everything that it is made of. No type contains itself, so it ends.
func (s *schema) walk(t reflect.Type) error {
	if in, ok := shared(t); ok && in != t {
		if err := s.walk(in); err != nil {
			return err
		}
		s.table(in)
		return nil
	}
	as := writtenAs(t)
	if s.seen[t] || t == timeType() {
		return nil
	}
	s.seen[t] = true
	switch as.Kind() {
	case reflect.Struct:
		if err := s.walkFields(t, as); err != nil {
			return err
		}
	case reflect.Slice, reflect.Array, reflect.Pointer:
		if err := s.walk(as.Elem()); err != nil {
			return err
		}
	case reflect.Map:
		if as.Key().Kind() != reflect.String {
			return fmt.Errorf("%s: only maps by text can be written", t)
		}
		if err := s.walk(as.Elem()); err != nil {
			return err
		}
	case reflect.Interface, reflect.Func, reflect.Chan:
		return fmt.Errorf("%s can't be written", t)
	}
	if t == labelsType() {
		s.table(t)
	}
	return nil
}

func (s *schema) walkFields(t, as reflect.Type) error {
	fields, err := fieldsOf(as)
	if err != nil {
		return err
	}
	s.fields[as] = fields
	var names []string
	for _, f := range fields {
		if err := s.walk(as.Field(f.index).Type); err != nil {
			return err
		}
		names = append(names, "  "+f.name+" "+as.Field(f.index).Type.String())
	}
	s.lines = append(s.lines, t.String()+"\n"+strings.Join(names, "\n"))
	return nil
}

func (s *schema) table(t reflect.Type) {
	for _, have := range s.tables {
		if have == t {
			return
		}
	}
	s.tables = append(s.tables, t)
}

// String lists every type that is written with its fields.
func (s *schema) String() string {
	var names []string
	for _, t := range s.tables {
		names = append(names, t.String())
	}
	return fmt.Sprintf("%s version %d\n\ntables: %s\n\n%s\n",
		Format, Version, strings.Join(names, ", "), strings.Join(s.lines, "\n\n"))
}
