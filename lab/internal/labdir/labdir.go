// Package labdir is the directory of a lab on disk: where each file lives, the
// marker that tells a lab's directory from any other, the lock that its
// supervisor holds, and the record of what runs. It touches only that directory.
package labdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const marker = "lab.json"

// Dir is the directory of one lab.
type Dir struct {
	path string
}

// At names the lab directory at path, without touching the disk.
func At(path string) (Dir, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("resolve --dir %s: %w", path, err)
	}
	return Dir{path: absolute}, nil
}

// Path returns the path of the directory, or of a file inside.
func (d Dir) Path(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

// Kubeconfig is the file that users point KUBECONFIG to.
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// Log is the log file of a part.
func (d Dir) Log(part string) string { return d.Path("logs", part+".log") }

// IsLab tells whether the directory has ever held a lab.
func (d Dir) IsLab() bool {
	_, err := os.Stat(d.Path(marker))
	return err == nil
}

// Prepare makes the directory and its folders. It refuses a directory that
// holds something else, because down --delete removes what it finds.
func (d Dir) Prepare() error {
	entries, err := os.ReadDir(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("--dir %s is a file: choose a directory", d.path)
	case err != nil:
		return fmt.Errorf("read --dir: %w", err)
	case len(entries) > 0 && !d.IsLab():
		return fmt.Errorf("--dir %s holds files that are not a lab's: choose an empty or a new directory", d.path)
	}
	for _, folder := range []string{"", "pki", "logs", "config"} {
		if err := os.MkdirAll(d.Path(folder), 0o700); err != nil {
			return d.explain(fmt.Errorf("make --dir: %w", err))
		}
	}
	return d.Write([]byte("{\"format\":1}\n"), marker)
}

// Write puts a private file into the directory, whole or not at all.
func (d Dir) Write(content []byte, elements ...string) error {
	path := d.Path(elements...)
	temporary, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return d.explain(fmt.Errorf("write %s: %w", path, err))
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
		return d.explain(fmt.Errorf("write %s: %w", path, err))
	}
	return nil
}

// Delete removes the directory and everything in it. The caller has made sure
// that it is a lab and holds its lock.
func (d Dir) Delete() error {
	if err := os.RemoveAll(d.path); err != nil {
		return fmt.Errorf("delete the lab: %w", err)
	}
	return nil
}

// explain turns a full disk into a sentence that says what to do.
func (d Dir) explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return d.FullDisk()
	}
	return err
}

// FullDisk is the error for a disk without room for the lab.
func (d Dir) FullDisk() error {
	return fmt.Errorf("the disk of --dir %s is full: free some space or choose a directory on another disk", d.path)
}

// IsFull tells whether the disk has less room than etcd needs for its next
// log segment, which is how a full disk shows itself once the parts run.
func (d Dir) IsFull() bool {
	const segment = 64 << 20
	var stat syscall.Statfs_t
	if err := syscall.Statfs(d.path, &stat); err != nil {
		return false
	}
	return uint64(stat.Bavail)*uint64(stat.Bsize) < segment
}
