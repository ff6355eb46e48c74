package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	prefix = "tenon-snapshot-"
	suffix = ".json.gz"
)

// Folder is where snapshot files are kept, the newest of them.
type Folder struct {
	Path string
	// Files and Bytes are how many, and how much together, are kept. What is more is dropped, the oldest first.
	Files int
	Bytes int64
}

// Save writes a case to a file of its own and returns its path. What the file holds is about people's workloads, so
// nobody else may read it. A file is there as a whole or not at all.
func (f *Folder) Save(c *Case) (string, error) {
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return "", fmt.Errorf("making the folder for snapshot files (--snapshot-dir): %w", err)
	}
	draft, err := os.CreateTemp(f.Path, ".draft-*")
	if err != nil {
		return "", fmt.Errorf("writing a snapshot file (--snapshot-dir): %w", err)
	}
	defer func() { _ = os.Remove(draft.Name()) }() // unless it has been renamed
	err = Write(draft, c)
	if shut := draft.Close(); err == nil && shut != nil {
		err = fmt.Errorf("writing a snapshot file (--snapshot-dir): %w", shut)
	}
	if err != nil {
		return "", err
	}
	if size, err := os.Stat(draft.Name()); err == nil && size.Size() > f.Bytes {
		return "", fmt.Errorf("the snapshot file has %d bytes, and all together may have %d", size.Size(), f.Bytes)
	}
	path, err := f.free(c)
	if err != nil {
		return "", err
	}
	if err := os.Rename(draft.Name(), path); err != nil {
		return "", fmt.Errorf("writing a snapshot file (--snapshot-dir): %w", err)
	}
	return path, f.prune()
}

// free finds a name that no file has. Names sort by time.
func (f *Folder) free(c *Case) (string, error) {
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
