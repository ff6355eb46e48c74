package replay

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	prefix = "tenon-snapshot-"
	suffix = ".json.gz"
	draft  = ".draft-"
)

// Folder is where snapshot files are kept, the newest of them. It belongs to one process.
type Folder struct {
	Path string
	// Files and Bytes are how many, and how much together, are kept. What is more is dropped, the oldest first.
	Files int
	Bytes int64
	// Largest is how much a single file may have; 0 is Bytes. One that would have more is not kept.
	Largest int64

	mu sync.Mutex // one file is written at a time
}

// Save writes a case to a file of its own and returns its path. What the file holds is about people's workloads, so
// nobody else may read it. A file is there as a whole or not at all.
func (f *Folder) Save(c *Case) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return "", fmt.Errorf("making the folder for snapshot files (--snapshot-dir): %w", err)
	}
	if err := f.tidy(); err != nil {
		return "", err
	}
	name, err := f.write(c)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(name) }() // unless it has been renamed
	path, err := f.freeName(c)
	if err != nil {
		return "", err
	}
	if err := os.Rename(name, path); err != nil {
		return "", fmt.Errorf("writing a snapshot file (--snapshot-dir): %w", err)
	}
	return path, f.prune()
}

// Tidy drops what a process that was killed has left half-written, and what is beyond bounds. It is for the start.
func (f *Folder) Tidy() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := os.Stat(f.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := f.tidy(); err != nil {
		return err
	}
	return f.prune()
}

// write writes a draft and returns its name. If that fails there is none.
func (f *Folder) write(c *Case) (name string, err error) {
	file, err := os.CreateTemp(f.Path, draft+"*")
	if err != nil {
		return "", fmt.Errorf("writing a snapshot file (--snapshot-dir): %w", err)
	}
	defer func() {
		if shut := file.Close(); err == nil && shut != nil {
			err = fmt.Errorf("writing a snapshot file (--snapshot-dir): %w", shut)
		}
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	return file.Name(), Write(&capped{Writer: file, left: f.largest()}, c)
}

func (f *Folder) largest() int64 {
	if f.Largest > 0 {
		return min(f.Largest, f.Bytes)
	}
	return f.Bytes
}

// capped fails once more is written than may be.
type capped struct {
	io.Writer
	left int64
}

func (w *capped) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		return 0, errors.New("the snapshot file is larger than a single one may be, and is not kept")
	}
	return w.Writer.Write(p)
}

// tidy drops drafts. The lock is held, so nobody is writing one.
func (f *Folder) tidy() error {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return fmt.Errorf("looking for old drafts of snapshot files: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), draft) || !entry.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(f.Path, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("dropping an old draft of a snapshot file: %w", err)
		}
	}
	return nil
}

// freeName finds a name that no file has. Names sort by time.
func (f *Folder) freeName(c *Case) (string, error) {
	base := prefix + c.Taken.UTC().Format("20060102T150405.000Z") + "-" + string(c.Step)
	for i := range 1000 {
		name := base
		if i > 0 {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		path := filepath.Join(f.Path, name+suffix)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
	}
	return "", fmt.Errorf("there are too many snapshot files of %s in %s", c.Taken.UTC().Format(time.RFC3339), f.Path)
}

// prune drops the oldest files until the rest is within bounds.
func (f *Folder) prune() error {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return fmt.Errorf("looking for old snapshot files: %w", err)
	}
	slices.Reverse(entries) // the newest first
	files, bytes := 0, int64(0)
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, suffix) || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue // somebody was faster
		}
		files, bytes = files+1, bytes+info.Size()
		if files <= f.Files && bytes <= f.Bytes {
			continue
		}
		if err := os.Remove(filepath.Join(f.Path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("dropping an old snapshot file: %w", err)
		}
	}
	return nil
}
