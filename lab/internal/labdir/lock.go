package labdir

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Lock is held by the supervisor of a lab for as long as it lives. The kernel
// drops it with the process, so a crash leaves nothing stale.
type Lock struct {
	file *os.File
}

// TakenError says that another supervisor owns the directory.
type TakenError struct {
	Dir string
	PID int
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("a lab already runs in %s (pid %d): use it, choose another --dir, or end it with: tenon lab "+
		"down --dir %s",
		e.Dir, e.PID, e.Dir)
}

// Lock takes the lock or returns a TakenError.
func (d Dir) Lock() (*Lock, error) {
	file, err := os.OpenFile(d.Path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, d.explain(fmt.Errorf("open the lock: %w", err))
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &TakenError{Dir: d.path, PID: d.holder()}
		}
		return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		_ = file.Close()
		return nil, d.explain(fmt.Errorf("write the lock: %w", err))
	}
	return &Lock{file: file}, nil
}

// Release gives the lock back. The file stays: removing it would let two
// supervisors lock two different files of the same name.
func (l *Lock) Release() error {
	if err := l.file.Truncate(0); err != nil {
		return errors.Join(fmt.Errorf("empty the lock: %w", err), l.file.Close())
	}
	return l.file.Close()
}

// Holder returns the pid of the running supervisor, or 0 when none runs.
func (d Dir) Holder() (int, error) {
	file, err := os.Open(d.Path("lock"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open the lock: %w", err)
	}
	defer func() { _ = file.Close() }()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return d.holder(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("test the lock: %w", err)
	}
	return 0, nil
}

func (d Dir) holder() int {
	content, err := os.ReadFile(d.Path("lock"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0
	}
	return pid
}
