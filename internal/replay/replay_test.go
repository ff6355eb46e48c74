package replay

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

var rewrite = flag.Bool("rewrite", false, "write the schema into its file; read what has changed before keeping it")

// Files outlive the program that wrote them, so nobody changes their format without noticing.
func TestSchema(t *testing.T) {
	sch, err := newSchema()
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/schema.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(sch.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != sch.String() {
		t.Errorf("the format is not what %s says. A field more needs no new version; one that is renamed, removed or "+
			"means something else does. "+
			"Then: go test ./internal/replay -run Schema -rewrite", file)
	}
}

// filler gives every field of every type a value that tells it from the others.
type filler struct{ n int }

func (f *filler) fill(t *testing.T, v reflect.Value) {
	f.n++
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Date(2030, 1, 1, 0, 0, f.n, f.n, time.UTC)
		return
	case *require.Values:
		*p = require.Only(fmt.Sprint("value", f.n))
		return
	case *cluster.Labels:
		*p = cluster.Labels{{Key: fmt.Sprint("key", f.n), Value: "v"}}
		return
	case **resource.Names:
		*p = &resource.Names{}
		(*p).Index(fmt.Sprint("example.com/", f.n))
		return
	case **cluster.Catalog:
		*p = cluster.NewCatalog([]cluster.Type{{Name: "b"}, {Name: "a", Capacity: resource.Vector{1, 2}}},
			[]cluster.Offering{{Type: 1, Zone: "z", Price: 0.25, Available: true,
				Labels: cluster.Labels{{Key: "k", Value: fmt.Sprint(f.n)}}}})
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !isDerived(v.Type(), name) && name != "Dim" {
				f.fill(t, v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(t, v.Index(0))
		f.fill(t, v.Index(1))
	case reflect.Array:
		f.fill(t, v.Index(1))
	case reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		f.fill(t, item)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", f.n)).Convert(v.Type().Key()), item)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d \" \\ <é>\n", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(f.n) / 3)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(f.n % 200))
	default:
		t.Fatalf("nobody fills a %s", v.Type())
	}
}

// full is a case in which nothing has its zero value.
func full(t *testing.T) *Case {
	c := new(Case)
	(&filler{}).fill(t, reflect.ValueOf(c).Elem())
	c.Snapshot.Seal()
	c.Newer.Seal()
	return c
}

func written1(t *testing.T, c *Case) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, c); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Every field comes back, and what was shared is shared again.
func TestRoundTrip(t *testing.T) {
	c := full(t)
	pods := c.Snapshot.Pods
	pods[1].Class, pods[1].Labels = pods[0].Class, pods[0].Labels
	pods[0].ExclusiveVolumes = []string{} // which is not nothing
	c.Snapshot.Pools[1].Catalog = c.Snapshot.Pools[0].Catalog
	file := written1(t, c)
	got, err := Read(bytes.NewReader(file), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text1(t, file), text1(t, written1(t, got))) {
		t.Error("what was read is written differently")
	}
	for i, want := range []any{c.Snapshot.Pods, c.Snapshot.Pools, c.Snapshot.Names, c.Policy, c.Found,
		c.Snapshot.Owners, c.Snapshot.Retry, c.Snapshot.Claims} {
		if have := []any{got.Snapshot.Pods, got.Snapshot.Pools, got.Snapshot.Names, got.Policy, got.Found,
			got.Snapshot.Owners, got.Snapshot.Retry, got.Snapshot.Claims}[i]; !reflect.DeepEqual(have, want) {
			t.Errorf("number %d came back as %+v, want %+v", i, have, want)
		}
	}
	back := got.Snapshot.Pods
	if back[0].Class != back[1].Class || &back[0].Labels[0] != &back[1].Labels[0] ||
		got.Snapshot.Pools[0].Catalog != got.Snapshot.Pools[1].Catalog {
		t.Error("what was shared is not")
	}
	if back[0].ExclusiveVolumes == nil {
		t.Error("an empty list came back as none")
	}
}

func text1(t *testing.T, file []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(zip); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipped(text string) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write([]byte(text)) // to memory
	_ = zip.Close()
	return out.Bytes()
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	file := written1(t, full(t))
	whole := string(text1(t, file))
	edit := func(from, to string) []byte {
		if !strings.Contains(whole, from) {
			t.Fatalf("there is no %s", from)
		}
		return zipped(strings.Replace(whole, from, to, 1))
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":       {nil, "this is none"},
		"text":          {[]byte("hello"), "this is none"},
		"other version": {edit(`"version":4`, `"version":5`), "read it with the version of tenon that wrote it"},
		"unknown field": {edit(`"Rev":`, `"Revision":`), `has no field "Revision"`},
		"twice":         {edit(`"Rev":`, `"Rev":1,"Rev":`), "has it twice"},
		"no such class": {edit(`"Class":0`, `"Class":99`), "there is no PodClass number 99"},
		"null":          {edit(`"Class":0`, `"Class":null`), "expected the place of a PodClass"},
		"negative":      {edit(`"Class":0`, `"Class":-1`), "there is no PodClass number -1"},
		"wrong kind":    {edit(`"Finished":true`, `"Finished":1`), "expected bool"},
		"more":          {zipped(whole + "{}"), "expected the end of the file"},
		"no snapshot":   {edit(`"Snapshot":0,`, ``), "there is no Snapshot"},
		"offering":      {edit(`"Offerings":[{`, `"Offerings":[{"Type":7,`), "is of type 7"},
	} {
		got, err := Read(bytes.NewReader(c.file), DefaultLimits())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v and %v, want an error with %q", name, got, err, c.want)
		}
	}
	for cut := 0; cut < len(file); cut += 1 + len(file)/40 {
		if _, err := Read(bytes.NewReader(file[:cut]), DefaultLimits()); err == nil {
			t.Fatalf("a file that is cut off after %d of %d bytes was read", cut, len(file))
		}
	}
}

// A small file can't take much memory: neither by being long once it is unpacked nor by naming much in few letters.
func TestReadingIsBounded(t *testing.T) {
	head := `{"format":"tenon-snapshot","version":4,"tables":{"Names":[`
	bomb := zipped(head + strings.Repeat("[],", 1<<20))
	if _, err := Read(bytes.NewReader(bomb), Limits{Text: 1 << 30, Memory: 1 << 20}); err == nil ||
		!strings.Contains(err.Error(), "more memory than it may") {
		t.Errorf("a million tables of names: %v", err)
	}
	if _, err := Read(bytes.NewReader(zipped(strings.Repeat(" ", 1<<20))), Limits{Text: 1 << 10,
		Memory: 1 << 20}); err == nil || !strings.Contains(err.Error(), "larger than it may be") {
		t.Errorf("a megabyte of blanks: %v", err)
	}
}

// Whatever is in a file, reading it ends with a case or with an error.
func FuzzRead(f *testing.F) {
	f.Add([]byte("hello"), false)
	f.Add([]byte(`{"format":"tenon-snapshot","version":4,"tables":{"Names":[[]]}}`), true)
	var out bytes.Buffer
	empty := (&cluster.Snapshot{Names: &resource.Names{},
		Pods: []*cluster.Pod{{UID: "p", Class: &cluster.PodClass{Key: "c"}}}}).Seal()
	if err := Write(&out, &Case{Snapshot: empty}); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes(), false)
	zip, err := gzip.NewReader(bytes.NewReader(out.Bytes()))
	if err != nil {
		f.Fatal(err)
	}
	var plain bytes.Buffer
	if _, err := plain.ReadFrom(zip); err != nil {
		f.Fatal(err)
	}
	f.Add(plain.Bytes(), true)
	f.Fuzz(func(t *testing.T, data []byte, pack bool) {
		if pack {
			data = zipped(string(data))
		}
		c, err := Read(bytes.NewReader(data), Limits{Text: 1 << 20, Memory: 1 << 24})
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v and %v", c, err)
		}
		if c == nil {
			return
		}
		if err := Write(&bytes.Buffer{}, c); err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
	})
}
