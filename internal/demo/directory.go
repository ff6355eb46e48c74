package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	lockName       = "demo.lock"
	labName        = "lab"
	controllerName = "controller.log"
)

// directory is the demo's own directory. Its lock is held by the demo or, when the demo is kept, by the controller that
// runs on; the kernel drops it with the process, so a crash leaves nothing stale. The file says whom to end.
type directory struct {
	path string
	lock *os.File
}

func (d *directory) lab() string           { return filepath.Join(d.path, labName) }
func (d *directory) controllerLog() string { return filepath.Join(d.path, controllerName) }

// takenError says that another demo has the directory.
type takenError struct {
	path string
	pid  int
}

func (e *takenError) Error() string {
	return fmt.Sprintf("a demo already runs in %s (pid %d): end it with: tenon demo --down --dir %s, or choose "+
		"another --dir", e.path, e.pid, e.path)
}

// openDirectory takes the directory and clears away what a demo that crashed has left in it.
func openDirectory(ctx context.Context, path string, out io.Writer) (*directory, error) {
	d, err := takeDirectory(path)
	if err != nil {
		return nil, err
	}
	if err := d.clear(ctx, out); err != nil {
		return nil, errors.Join(err, d.letGo())
	}
	if err := d.sign(os.Getpid()); err != nil {
		return nil, errors.Join(err, d.letGo())
	}
	return d, nil
}

// takeDirectory makes the directory if need be and takes its lock. It refuses a directory that holds something else,
// because the demo removes what it finds.
func takeDirectory(path string) (*directory, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolving --dir %s: %w", path, err)
	}
	if err := mustBeOurs(absolute); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(absolute, 0o700); err != nil {
		return nil, fmt.Errorf("making --dir: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(absolute, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the demo's lock: %w", err)
	}
	d := &directory{path: absolute, lock: file}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(&takenError{path: relative(absolute), pid: d.holder()}, file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", file.Name(), err), file.Close())
	}
	return d, nil
}

func mustBeOurs(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("--dir %s is a file: choose a directory", path)
	case err != nil:
		return fmt.Errorf("reading --dir: %w", err)
	}
	for _, e := range entries {
		switch e.Name() {
		case lockName, labName, controllerName:
		default:
			return fmt.Errorf("--dir %s holds %s, which is not a demo's: choose an empty or a new directory",
				path, e.Name())
		}
	}
	if _, err := os.Stat(filepath.Join(path, lockName)); err != nil && len(entries) > 0 {
		return fmt.Errorf("--dir %s holds files that are not a demo's: choose an empty or a new directory", path)
	}
	return nil
}

// sign writes down which process to end in order to end the demo.
func (d *directory) sign(pid int) error {
	err := d.lock.Truncate(0)
	if err == nil {
		_, err = d.lock.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0)
	}
	if err != nil {
		return fmt.Errorf("writing the demo's lock: %w", err)
	}
	return nil
}

// holder reads what sign wrote; 0 if that is nothing.
func (d *directory) holder() int {
	text, err := os.ReadFile(filepath.Join(d.path, lockName))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// clear ends a lab that an earlier demo left running and removes everything but the lock.
func (d *directory) clear(ctx context.Context, out io.Writer) error {
	if _, err := os.Stat(d.lab()); err == nil {
		if err := labDown(ctx, d.lab(), out); err != nil {
			return err
		}
	}
	for _, path := range []string{d.lab(), d.controllerLog()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing what an earlier demo left: %w", err)
		}
	}
	return nil
}

// remove removes the directory and gives the lock back. Nothing of the demo may run any more.
func (d *directory) remove(ctx context.Context, out io.Writer) error {
	if err := d.clear(ctx, out); err != nil {
		return errors.Join(err, d.letGo())
	}
	if err := os.RemoveAll(d.path); err != nil {
		return errors.Join(fmt.Errorf("removing --dir: %w", err), d.letGo())
	}
	return d.letGo()
}

// letGo gives the lock back as far as this process is concerned.
func (d *directory) letGo() error { return d.lock.Close() }

// Down ends a demo that was kept, or one that runs in another terminal, and removes its directory.
func Down(ctx context.Context, path string, out io.Writer) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(out, "demo: none runs in %s\n", path)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	d, err := takeFromHolder(ctx, path)
	if err != nil {
		return err
	}
	if err := d.remove(ctx, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "demo: ended, and %s removed\n", path)
	return nil
}

// takeFromHolder ends the process that holds the directory, if there is one, and takes the lock. That the lock is held
// is what proves that the number in it still is that process's.
func takeFromHolder(ctx context.Context, path string) (*directory, error) {
	asked := 0
	for {
		d, err := takeDirectory(path)
		taken, held := errors.AsType[*takenError](err)
		if !held {
			return d, err
		}
		if taken.pid > 0 && taken.pid != asked {
			asked = taken.pid
			if err := syscall.Kill(asked, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				return nil, fmt.Errorf("ending the demo (pid %d): %w", asked, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the demo in %s (pid %d) did not end in %s", path, taken.pid, endPatience)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
