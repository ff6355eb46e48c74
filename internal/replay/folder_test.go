package replay

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

func emptyCase(at time.Time) *Case {
	return &Case{Step: Make, Taken: at, Snapshot: (&cluster.Snapshot{Names: &resource.Names{}}).Seal()}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestFolderKeepsTheNewest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for", "it")
	f := &Folder{Path: dir, Files: 3, Bytes: 1 << 20}
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range 5 {
		if _, err := f.Save(emptyCase(start.Add(time.Duration(i) * time.Second))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), []byte("not ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := f.Save(emptyCase(start.Add(4 * time.Second))) // in the same moment as another
	if err != nil {
		t.Fatal(err)
	}
	want := "mine.txt tenon-snapshot-20300101T120003.000Z-make.json.gz " +
		"tenon-snapshot-20300101T120004.000Z-make-1.json.gz tenon-snapshot-20300101T120004.000Z-make.json.gz"
	if got := strings.Join(list(t, dir), " "); got != want {
		t.Errorf("there are %s, want %s", got, want)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v (%v)", info.Mode(), err)
	}
	if c, err := Read(file, DefaultLimits()); err != nil || !c.Taken.Equal(start.Add(4*time.Second)) {
		t.Errorf("read %v, %v", c, err)
	}
	// What takes too much room goes, too; a single file that does is not kept at all.
	size, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f.Bytes = 2*size.Size() + 10
	if _, err := f.Save(emptyCase(start.Add(time.Hour))); err != nil || len(list(t, dir)) != 3 {
		t.Errorf("there are %s (%v)", list(t, dir), err)
	}
	f.Bytes = 10
	if _, err := f.Save(emptyCase(start.Add(2 * time.Hour))); err == nil || len(list(t, dir)) != 3 {
		t.Errorf("there are %s (%v)", list(t, dir), err)
	}
}

// What was left half-written is dropped at the start and before the next file; a file that gets too large leaves
// nothing.
func TestFolderDropsDrafts(t *testing.T) {
	dir := t.TempDir()
	f := &Folder{Path: dir, Files: 3, Bytes: 1 << 20, Largest: 1 << 10}
	put := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		".draft-1", ".draft-2", ".mine",
		"tenon-snapshot-1.json.gz", "tenon-snapshot-2.json.gz", "tenon-snapshot-3.json.gz", "tenon-snapshot-4.json.gz",
	} {
		put(name)
	}
	if err := f.Tidy(); err != nil {
		t.Fatal(err)
	}
	want := ".mine tenon-snapshot-2.json.gz tenon-snapshot-3.json.gz tenon-snapshot-4.json.gz"
	if got := strings.Join(list(t, dir), " "); got != want {
		t.Errorf("there are %s, want %s", got, want)
	}
	put(".draft-3")
	large := emptyCase(time.Now())
	for i := range 500 {
		large.Stack += fmt.Sprint(i*i*i, " ")
	}
	path, err := f.Save(large)
	if err == nil || path != "" || !strings.Contains(err.Error(), "larger than a single one may be") {
		t.Errorf("got %q, %v", path, err)
	}
	if got := list(t, dir); len(got) != 4 {
		t.Errorf("there are %s", got)
	}
	if err := (&Folder{Path: filepath.Join(dir, "none")}).Tidy(); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// Writing takes little memory, however much is written, and stops when nothing can be written any more.
func TestWritingTakesLittleMemory(t *testing.T) {
	c := emptyCase(time.Now())
	text := strings.Repeat("long ", 2000)
	for i := range 3000 {
		class := &cluster.PodClass{Key: fmt.Sprint(i), Unsupported: []string{text[i%100:]}}
		c.Snapshot.Pods = append(c.Snapshot.Pods, &cluster.Pod{UID: fmt.Sprint(i), Class: class})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := Write(io.Discard, c); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("30 MB of text took %d bytes of memory", used)
	}
	w := &capped{Writer: io.Discard, left: 1000}
	if err := Write(w, c); err == nil || w.left < -(64<<10) {
		t.Errorf("got %v after %d bytes too much", err, -w.left)
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := &Folder{Path: filepath.Join(blocked, "below"), Files: 3, Bytes: 1 << 20}
	if path, err := f.Save(emptyCase(time.Now())); err == nil || path != "" || !strings.Contains(err.Error(),
		"--snapshot-dir") {
		t.Errorf("got %q, %v", path, err)
	}
}
