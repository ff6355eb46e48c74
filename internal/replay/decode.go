package replay

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Limits bound what reading a file may cost, whatever is in it.
type Limits struct {
	// Text is how many bytes it may be once it is unpacked; Memory is how many bytes its values may take.
	Text, Memory int64
}

// DefaultLimits are enough for a cluster of a hundred thousand pods and a few clouds.
func DefaultLimits() Limits { return Limits{Text: 1 << 30, Memory: 4 << 30} }

// Read reads a snapshot file. What is not one, is cut off or costs more than the limits is an error.
func Read(r io.Reader, limits Limits) (*Case, error) {
	sch, err := newSchema()
	if err != nil {
		return nil, err
	}
	zip, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, fmt.Errorf("reading a snapshot file: this is none (expected gzip): %w", err)
	}
	d := &decoder{schema: sch, left: limits.Memory, tables: make(map[reflect.Type]reflect.Value)}
	d.json = json.NewDecoder(&bounded{Reader: zip, left: limits.Text})
	d.json.UseNumber()
	c, err := d.document()
	if err != nil {
		return nil, fmt.Errorf("reading a snapshot file, at byte %d of its text: %w", d.json.InputOffset(), err)
	}
	return c, nil
}

// bounded fails where io.LimitReader would only end.
type bounded struct {
	io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("the file is larger than it may be")
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// decoder reads values and pays for them from what is left of the memory.
type decoder struct {
	schema *schema
	json   *json.Decoder
	left   int64
	tables map[reflect.Type]reflect.Value // slices of pointers, or of labels
}

func (d *decoder) document() (*Case, error) {
	if err := d.delim('{'); err != nil {
		return nil, err
	}
	if err := d.head(); err != nil {
		return nil, err
	}
	if err := d.key("tables"); err != nil {
		return nil, err
	}
	if err := d.delim('{'); err != nil {
		return nil, err
	}
	for _, t := range d.schema.tables {
		if err := d.key(t.Name()); err != nil {
			return nil, err
		}
		if err := d.table(t); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name(), err)
		}
	}
	if err := d.delim('}'); err != nil {
		return nil, err
	}
	if err := d.key("case"); err != nil {
		return nil, err
	}
	c := new(Case)
	if err := d.value(reflect.ValueOf(c).Elem()); err != nil {
		return nil, err
	}
	if err := d.delim('}'); err != nil {
		return nil, err
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) { // which is where gzip compares its checksum
		return nil, fmt.Errorf("expected the end of the file: %w", cmp.Or(err, errors.New("something follows it")))
	}
	if c.Snapshot == nil {
		return nil, errors.New("there is no Snapshot in the case")
	}
	return c, nil
}

// head reads which format and version it is.
func (d *decoder) head() error {
	format, version := "", int64(0)
	if err := d.key("format"); err != nil {
		return err
	}
	if err := d.value(reflect.ValueOf(&format).Elem()); err != nil {
		return err
	}
	if err := d.key("version"); err != nil {
		return err
	}
	if err := d.value(reflect.ValueOf(&version).Elem()); err != nil {
		return err
	}
	if format != Format || version != Version {
		return fmt.Errorf("found format %q, version %d, and expected %q, version %d: read it with the version of "+
			"tenon that wrote it",
			format, version, Format, Version)
	}
	return nil
}

// table reads the shared values of a type.
func (d *decoder) table(t reflect.Type) error {
	of := reflect.PointerTo(t)
	if t == labelsType() {
		of = t
	}
	list := reflect.MakeSlice(reflect.SliceOf(of), 0, 0)
	if err := d.delim('['); err != nil {
		return err
	}
	for d.json.More() {
		if err := d.charge(int64(t.Size()) + int64(of.Size())); err != nil {
			return err
		}
		item := reflect.New(t)
		if err := d.entry(item); err != nil {
			return fmt.Errorf("number %d: %w", list.Len(), err)
		}
		if of == t {
			item = item.Elem()
		}
		list = reflect.Append(list, item)
	}
	d.tables[t] = list
	return d.delim(']')
}

// entry reads one shared value.
func (d *decoder) entry(item reflect.Value) error {
	switch p := item.Interface().(type) {
	case *resource.Names:
		var extra []string
		if err := d.value(reflect.ValueOf(&extra).Elem()); err != nil {
			return err
		}
		names, err := resource.NamesOf(extra)
		if err == nil {
			*p = *names
		}
		return err
	case *cluster.Catalog:
		var g catalogForm
		if err := d.value(reflect.ValueOf(&g).Elem()); err != nil {
			return err
		}
		return d.catalog(p, g)
	case *cluster.Labels:
		return d.slice(item.Elem())
	case *cluster.Snapshot:
		if err := d.object(item.Elem()); err != nil {
			return err
		}
		return sealed(p)
	}
	return d.object(item.Elem())
}

// catalog puts a catalog together.
func (d *decoder) catalog(into *cluster.Catalog, g catalogForm) error {
	for i := range g.Offerings {
		if at := g.Offerings[i].Type; at < 0 || at >= len(g.Types) {
			return fmt.Errorf("offering %d is of type %d, and there are %d", i, at, len(g.Types))
		}
	}
	var alike []*cluster.Catalog
	if have, ok := d.tables[catalogType()]; ok {
		alike = have.Interface().([]*cluster.Catalog)
	}
	if err := d.charge(int64(len(g.Offerings)) * int64(reflect.TypeFor[cluster.Offering]().Size())); err != nil {
		return err
	}
	*into = *cluster.NewCatalog(g.Types, g.Offerings, alike...)
	return nil
}

// sealed seals a snapshot in which nothing is missing that no snapshot lacks.
func sealed(s *cluster.Snapshot) error {
	if s.Names == nil {
		return errors.New("field Names is missing")
	}
	for _, p := range s.Pods {
		if p.Class == nil {
			return fmt.Errorf("pod %s has no Class", p.ID())
		}
		for _, v := range p.Volumes {
			if v.Dim < 0 || v.Dim >= resource.Size {
				return fmt.Errorf("pod %s: Volumes.Dim is %d, and there are %d", p.ID(), v.Dim, resource.Size)
			}
		}
	}
	for _, daemon := range s.Daemons {
		if daemon.Class == nil {
			return fmt.Errorf("daemon %s has no Class", daemon.Name)
		}
	}
	s.Seal()
	return nil
}

// charge takes what a value costs off what may still be used.
func (d *decoder) charge(bytes int64) error {
	if d.left -= bytes; d.left < 0 {
		return errors.New("the file needs more memory than it may")
	}
	return nil
}

func (d *decoder) value(v reflect.Value) error {
	if in, ok := shared(v.Type()); ok {
		return d.reference(in, v)
	}
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		return d.time(p)
	case *require.Values:
		var form require.Form
		if err := d.value(reflect.ValueOf(&form).Elem()); err != nil {
			return err
		}
		var err error
		*p, err = form.Values()
		return err
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.object(v)
	case reflect.Slice:
		return d.slice(v)
	case reflect.Array:
		return d.array(v)
	case reflect.Map:
		return d.entries(v)
	case reflect.Pointer:
		if err := d.charge(int64(v.Type().Elem().Size())); err != nil {
			return err
		}
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(v.Elem())
	}
	return d.scalar(v)
}

// reference reads the place of a shared value in its table.
func (d *decoder) reference(in reflect.Type, v reflect.Value) error {
	token, err := d.json.Token()
	if err != nil {
		return err
	}
	if delim, ok := token.(json.Delim); ok && delim == '[' && in == labelsType() {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return d.delim(']')
	}
	if token == nil && in == labelsType() {
		return nil
	}
	number, ok := token.(json.Number)
	if !ok {
		return fmt.Errorf("found %v, and expected the place of a %s in its table", token, in.Name())
	}
	at, err := strconv.Atoi(number.String())
	list, known := d.tables[in]
	if err != nil || !known || at < 0 || at >= list.Len() {
		return fmt.Errorf("there is no %s number %s", in.Name(), number)
	}
	v.Set(list.Index(at))
	return nil
}

func (d *decoder) time(into *time.Time) error {
	var text string
	if err := d.value(reflect.ValueOf(&text).Elem()); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	*into = at.UTC()
	return err
}

func (d *decoder) object(v reflect.Value) error {
	if err := d.delim('{'); err != nil {
		return err
	}
	fields, seen := d.schema.fields[v.Type()], uint64(0) // no struct has more than 64, and a test says so
	for d.json.More() {
		name, err := d.text()
		if err != nil {
			return err
		}
		at := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if at < 0 || seen&(1<<at) != 0 {
			return fmt.Errorf("%s has no field %q, or has it twice: was the file written by a newer version?",
				v.Type(), name)
		}
		seen |= 1 << at
		if err := d.value(v.Field(fields[at].index)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return d.delim('}')
}

func (d *decoder) slice(v reflect.Value) error {
	token, err := d.json.Token()
	if err != nil || token == nil { // there may be no list where others have an empty one
		return err
	}
	if token != json.Delim('[') {
		return fmt.Errorf("found %v, and expected [", token)
	}
	list := reflect.MakeSlice(v.Type(), 0, 0)
	for d.json.More() {
		if err := d.charge(2 * int64(v.Type().Elem().Size())); err != nil { // it may have grown by half too much
			return err
		}
		list = reflect.Append(list, reflect.Zero(v.Type().Elem()))
		if err := d.value(list.Index(list.Len() - 1)); err != nil {
			return err
		}
	}
	v.Set(list)
	return d.delim(']')
}

func (d *decoder) array(v reflect.Value) error {
	if err := d.delim('['); err != nil {
		return err
	}
	for i := 0; d.json.More(); i++ {
		if i >= v.Len() {
			return fmt.Errorf("more than %d items", v.Len())
		}
		if err := d.value(v.Index(i)); err != nil {
			return err
		}
	}
	return d.delim(']')
}

func (d *decoder) entries(v reflect.Value) error {
	if err := d.delim('{'); err != nil {
		return err
	}
	v.Set(reflect.MakeMap(v.Type()))
	for d.json.More() {
		if err := d.charge(2 * int64(v.Type().Elem().Size()+v.Type().Key().Size())); err != nil {
			return err
		}
		key, err := d.text()
		if err != nil {
			return err
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(item); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
	}
	return d.delim('}')
}
